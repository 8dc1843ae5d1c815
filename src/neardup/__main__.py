"""`python -m neardup` is the command `neardup`."""

from neardup.cli.main import program

if __name__ == "__main__":
    program()
