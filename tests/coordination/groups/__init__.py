"""Tests of the group coordinator's rules. A number in brackets is a case of the conformance checklist."""
