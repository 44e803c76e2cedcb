"""Measures kshim's rates and their cost, and Apache Kafka's in the same minutes.

    python -m benchmarks [NAME…] [--against apache-kafka|HOST:PORT] [--rounds N] [--json FILE] [--plot FILE]

`cases.py` is the table of what is measured. A case of `loads/` is a function that runs in a process of its
own, the generator, and asks one running server for as much as it can; `running.py` starts the servers and
gives each its turn, round by round. Those of `alone/` compare something else, and print what they find.
"""
