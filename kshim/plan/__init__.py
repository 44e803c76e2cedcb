"""Predicts how a group fares under a deployment: the coordinator and model clients on a virtual clock."""
