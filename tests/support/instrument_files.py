"""Write files of instruments that HyperSpy only reads, or does not write in this form."""

import struct

import numpy as np

KINDS = {"U08": ">u1", "U16": ">u2", "U32": ">u4"}


def write_mib(path, values, *, kind):
    """Write frames of the shape (*nav, rows, columns) as Merlin does."""
    *nav, rows, columns = values.shape
    frames = values.reshape(-1, rows, columns).astype(KINDS[kind])
    content = b""
    for number, frame in enumerate(frames):
        head = f"MQ1,{number + 1:06},00384,01,{columns:04},{rows:04},{kind},   1x1,01,"
        head += f"2024-07-02 11:46:43.0,0.001,0,2024-07-02T11:46:43.{number:09}Z,100000ns,6,"
        content += head.encode().ljust(384, b"\0") + frame.tobytes()
    path.write_bytes(content)
    described = f"HDR,\t\nFrames in Acquisition (Number):\t{len(frames)}\n"
    described += f"Frames per Trigger (Number):\t{nav[-1]}\nEnd\t\n"
    path.with_suffix(".hdr").write_text(described)
    return path


def write_blo(path, values):
    """Write frames of the shape (ny, nx, size, size) as NanoMegas does."""
    ny, nx, size, _ = values.shape
    start = 256 + nx * ny
    numbers = (b"IMGBLO", 0x0102, 256, start, 0, size, 0, nx, ny, 0, 1.0, 1.0, 200_000, 50, 8, 0.0)
    header = struct.pack("<6sHIIIHHHHHddIHId", *numbers)
    blocks = b"".join(
        b"\xaa\x55" + struct.pack("<I", number) + frame.tobytes()
        for number, frame in enumerate(values.reshape(-1, size, size))
    )
    path.write_bytes(header.ljust(start, b"\0") + blocks)


EMPAD = """<?xml version="1.0"?><root><raw_file filename="scan_x3_y2.raw"/>
<pix_x>3</pix_x><pix_y>2</pix_y></root>"""


def write_empad(folder, values):
    """Write frames of the shape (2, 3, 128, 128) as an EMPAD does."""
    rows = np.pad(values.astype("<f4"), [(0, 0), (0, 0), (0, 2), (0, 0)], constant_values=-1)
    (folder / "scan_x3_y2.raw").write_bytes(rows.tobytes())
    (folder / "scan.xml").write_text(EMPAD)
    return folder / "scan.xml"
