"""Let writing of result files fail, as on a disk that is full."""

from dataclasses import replace

from udfdask.io.output_formats import FORMATS


def fails(monkeypatch, suffix):
    """Let writing of a format fail."""

    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(FORMATS, suffix, replace(FORMATS[suffix], write=fail))
