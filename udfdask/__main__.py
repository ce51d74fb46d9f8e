"""`python -m udfdask`: the command line where its script is not on the path."""

from udfdask.cli import main

main(prog_name="udfdask")
