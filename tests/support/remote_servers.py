"""Real servers on this machine: HTTP with and without ranges, which counts, and S3."""

import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

RANGE = re.compile(r"bytes=(\d+)-(\d*)")
BLOCK = 1 << 16


@dataclass
class Request:
    method: str
    path: str
    start: int
    """First byte that was sent."""
    sent: int
    """Number of bytes in the body of the answer."""


@dataclass
class FileServer:
    """Files of a folder, sent by HTTP; each request is noted in `requests`."""

    folder: Path
    ranges: bool = True
    """Whether the server sends parts of files."""
    tells: str = "etag"
    """What the server tells about versions: etag or nothing."""
    header: tuple[str, str] = ("", "")
    """A header that each request must have."""
    requests: list[Request] = field(default_factory=list)
    url: str = ""

    def loaded(self, suffix=""):
        """Requests for contents of files whose names end in `suffix`; all are forgotten then."""
        found = [r for r in self.requests if r.method == "GET" and r.path.endswith(suffix)]
        self.requests.clear()
        return found


class Handler(BaseHTTPRequestHandler):
    """Answers requests for the files of a `FileServer`, which a subclass has."""

    protocol_version = "HTTP/1.1"
    files: FileServer

    def do_GET(self):
        self.answer("GET")

    def do_HEAD(self):
        self.answer("HEAD")

    def answer(self, method):
        files, path = self.files, self.path.partition("?")[0].lstrip("/")
        name, value = files.header
        if name and self.headers.get(name) != value:
            self.reply(method, path, 403, b"")
            return
        try:
            content = (files.folder / path).read_bytes()
        except OSError:
            self.reply(method, path, 404, b"")
            return
        version = (files.folder / path).stat().st_mtime_ns
        headers = {"ETag": f'"{version:x}-{len(content):x}"'} if files.tells == "etag" else {}
        asked = RANGE.fullmatch(self.headers.get("Range", "")) if files.ranges else None
        if asked is None:
            self.reply(method, path, 200, content, headers=headers)
            return
        start = int(asked[1])
        end = min(int(asked[2] or len(content)) + 1, len(content))
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(content)}"
        self.reply(method, path, 206, content[start:end], start=start, headers=headers)

    def reply(self, method, path, status, body, *, start=0, headers=()):
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        # noted first, because a client goes on when it has the last byte
        request = Request(method, path, start, 0)
        self.files.requests.append(request)
        body = memoryview(body if method == "GET" else b"")
        try:
            for position in range(0, len(body), BLOCK):
                part = body[position : position + BLOCK]
                request.sent += len(part)
                self.wfile.write(part)
        except ConnectionError:  # the client has read enough
            self.close_connection = True

    def log_message(self, *_):
        """Print nothing."""


@contextmanager
def serving(folder, **how):
    files = FileServer(Path(folder), **how)
    handler = type("OneServer", (Handler,), {"files": files})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        files.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield files
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def s3_server():
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield {
            "endpoint_url": f"http://{host}:{port}",
            "key": "somebody",
            "secret": "something",
            "client_kwargs": {"region_name": "eu-west-1"},
        }
    finally:
        server.stop()
