"""The coordinator's rules, one file a module. A number in brackets is a case of the conformance checklist."""
