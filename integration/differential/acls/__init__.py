"""Who may do what: Apache Kafka's StandardAuthorizer and kshim's are asked the same.

* `cases` has a request for each API, and the ACLs that are just enough for it. `matrix` makes cells of them:
  for each case and version a user who may do nothing, one who may do just enough, and one who lacks one ACL.
* `decisions` invents ACLs from a seed, and asks which operations follow from them.
* `stories` are of administrators who make, find and delete ACLs, also wrong ones.
"""
