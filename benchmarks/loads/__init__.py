"""The loads: one module an idea, one function a case.

A function is given the server, the arguments of the load from the table of cases, and how many seconds to
measure. It runs in a process of its own.
"""
