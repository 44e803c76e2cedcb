"""Confluent's JavaScript client: `drive.js` makes the calls, the tests judge the answers."""
