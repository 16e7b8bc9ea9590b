"""The listening socket of the page."""

import socket


def listen(bind: str, port: int) -> socket.socket:
    """Return a listening socket; raise OSError if the address cannot be bound."""
    family = socket.AF_INET6 if ":" in bind else socket.AF_INET
    return socket.create_server((bind, port), family=family)
