"""A proxy that cuts connections after some bytes, refuses them, or is slow."""

import socket
import threading
import time
from contextlib import suppress


class LossyProxy:
    """A proxy on loopback in front of a port."""

    def __init__(self, port: int) -> None:
        self.target = port
        self.cut_after: int | None = None  # bytes of each new connection; 0 refuses connections
        self.delay = 0.0  # for every 4 kB
        self.cuts = 0
        self.attempts = 0
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                inner, _ = self._server.accept()
            except OSError:
                return
            self.attempts += 1
            try:
                assert self.cut_after != 0
                outer = socket.create_connection(("127.0.0.1", self.target))
            except (OSError, AssertionError):
                inner.close()
                continue
            budget = [self.cut_after if self.cut_after is not None else -1]
            for one, other in ((inner, outer), (outer, inner)):
                threading.Thread(target=self._pump, args=(one, other, budget), daemon=True).start()

    def _pump(self, one: socket.socket, other: socket.socket, budget: list[int]) -> None:
        with suppress(OSError):
            while data := one.recv(4096):
                time.sleep(self.delay)
                if 0 <= budget[0] < len(data):
                    self.cuts += 1
                    break
                budget[0] -= len(data) if budget[0] >= 0 else 0
                other.sendall(data)
        for each in (one, other):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
