"""Confluent's JavaScript client: `drive.js` asks, the tests judge the answers."""
