"""`python -m neardup` is the command `neardup`."""

from neardup.cli.main import main

if __name__ == "__main__":
    main()
