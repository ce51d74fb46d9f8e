"""`python -m udfdask`: the command line where its script is not on the path."""

from udfdask.cli import main

if __name__ == "__main__":
    main(prog_name="udfdask")
