"""What people copy from the pages, run: programs in other languages, and the container's commands."""
