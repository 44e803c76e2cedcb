"""The entries of a Produce request: the checks before they are appended, the appends, and markers."""
