"""HTTP servers of fake programs on the loopback interface."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class QuietHandler(BaseHTTPRequestHandler):
    """A request that is not logged."""

    def content(self) -> bytes:
        return self.rfile.read(int(self.headers.get("content-length", 0)))

    def send(self, status: int, body: bytes = b"", **headers: str) -> None:
        """Send a complete answer."""
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        for name, value in {"content_type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Suppress the log."""


@contextmanager
def served(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve requests while the context lasts; yield the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
