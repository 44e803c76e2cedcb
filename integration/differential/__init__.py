"""Apache Kafka and kshim are asked the same: do they answer the same?

* Histories, step by step and field by field. `words` defines what one is and the verbs it is written in;
  `histories` holds hand-written ones about groups, and `invented` makes any number from a seed, about groups,
  records, topics and transactions. In `playing`, `player` plays one against one server, `run` many against
  both; `learned` keeps the ids that a server gave, and `settling` waits for changes that a server answers
  before they are in force. `plain` makes messages comparable, `compare` finds where two servers differ,
  `meant` says which differences are meant, and `shrink` shortens a history that differs.
* Stories (`stories`), functions of a talk with one server, which go on according to the answers they get:
  about records, transactions, administrators and SASL; and one of unmodified clients, overheard by a proxy.
* Who may do what, by their ACLs (`acls`).
* What Apache Kafka's own tools print (`tools`).
* Requests that are written loosely (`looseness`).
* Meant differences: a scenario for each key of docs/differences.md that nothing above meets (`differences`).

Only what docs/differences.md lists may differ. `python -m integration.differential` plays as many invented
histories as one likes; KSHIM_TEST_COMMAND names the kshim to play them against. Where that is Apache Kafka
too (`python -m integration.apache_kafka`), nothing may differ: else the comparison is at fault.
"""
