"""For the tests of those who use kshim: what they start, and how it starts in the least time."""
