"""`python -m kshim` is `kshim`."""

from kshim.cli import main

if __name__ == "__main__":
    main()
