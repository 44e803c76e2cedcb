"""Plays deployments with real clients, and compares what they do with what `kshim plan` predicts."""
