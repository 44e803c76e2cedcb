"""Runs what people copy from the pages: programs in other languages, and the container's commands."""
