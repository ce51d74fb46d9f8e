"""Print the command that stands in the README under ``<!-- command: NAME -->``, word for word.

The marker is followed by one fenced block of a single line. Anything else is an error.
"""

import re
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"


def readme_command(name: str, text: str) -> str:
    """Find the single line in `text` that the marker `name` announces."""
    pattern = rf"^<!-- command: {re.escape(name)} -->\n+```[a-z]*\n([^\n]*)\n```$"
    found = [line for line in re.findall(pattern, text, flags=re.MULTILINE) if line.strip()]
    if len(found) != 1:
        message = (
            f"expected one single-line command marked {name!r} in README.md, found {len(found)}"
        )
        raise SystemExit(message)
    return found[0]


if __name__ == "__main__":
    print(readme_command(sys.argv[1], README.read_text(encoding="utf-8")))
