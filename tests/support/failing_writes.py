"""Let writing of result files fail, as on a disk that becomes full."""

from dataclasses import replace

from udfdask.io.output_formats import FORMATS


def fails_after(monkeypatch, suffix, first):
    """Let writing of a format fail after a number of written files; the first is the small one."""
    written = []

    def fail(*args, write=FORMATS[suffix].write, **kwargs):
        written.append(args)
        if len(written) > first:
            raise OSError(28, "No space left on device")
        return write(*args, **kwargs)

    monkeypatch.setitem(FORMATS, suffix, replace(FORMATS[suffix], write=fail))
