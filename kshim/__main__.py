"""`python -m kshim` is `kshim`."""

from kshim.cli.main import main

if __name__ == "__main__":
    main()
