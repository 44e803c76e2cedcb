"""The same told to Apache Kafka and to kshim: do they answer the same?

* Histories, step by step and field by field. `history` says what one is; `verbs`, `record_verbs`,
  `admin_verbs` and `transaction_verbs` are the words they are written in; `histories` holds those of groups
  that somebody wrote, and `invented` makes any number from a seed, of groups, records, topics and
  transactions. `player` plays one against one server, `run` many against both; `learned` keeps what a server
  gave, and `settling` waits for what it changes later than it answers. `compare` tells where two servers
  differ, `meant` which differences are meant, and `shrink` makes a history that differs small.
* Dialogues of unmodified clients (`dialogue`), told again without what chance puts into them (`retold`).
* What Apache Kafka's own tools print.
* What is meant to differ: a scenario for each key of docs/differences.md that nothing above meets
  (`differences`).

What may differ stands in docs/differences.md, and nowhere else. `python -m integration.differential` plays as
many invented histories as one likes; KSHIM_TEST_COMMAND names the kshim to play them against. Where that is
Apache Kafka too (`python -m integration.apache_kafka`), nothing may differ: else the comparison is at fault.
"""
