"""Parse the URL of a Redis that hivepipe does not run itself, and notify the forwarder.

    redis://[user:password@]host[:port][/database]      hooks connect to a loopback address
    unix://[user:password@]/path[?db=database]          hooks connect to it
    any other                                           hooks spool, and notify the forwarder

Hooks import this module if the record names a URL.
"""

from _socket import AF_INET, AF_INET6, AF_UNIX, SOCK_DGRAM, socket

PORT = 6379
# Datagram socket in the runtime folder, bound by the process that drains the spool
BELL = "bell.sock"


class Endpoint:
    """A socket address, and the commands for login and database that precede the first command."""

    __slots__ = ("database", "family", "login", "place")

    def __init__(self, family: int, place: "str | tuple[str, int]", database: str) -> None:
        """Set the address; `place` is a path, or a host and a port."""
        self.family = family
        self.place = place
        self.database = database
        self.login: list[str] = []


def parse(url: str) -> Endpoint:
    """Return the endpoint of a redis:// or unix:// URL. Raise ValueError if it is not valid."""
    scheme, found, rest = url.partition("://")
    before, at, after = rest.rpartition("@")
    if not found or scheme not in ("redis", "unix"):
        raise ValueError(f"not an address of a Redis: {scheme}")
    if scheme == "unix":
        path, _, query = after.partition("?")
        endpoint = Endpoint(AF_UNIX, decoded(path), query.removeprefix("db="))
    else:
        place, _, database = after.partition("/")
        host, colon, port = place.rpartition(":")
        if not colon or port.endswith("]"):
            host, port = place, str(PORT)
        family = AF_INET6 if host.startswith("[") else AF_INET
        endpoint = Endpoint(family, (host.strip("[]"), int(port)), database)
    if at:
        user, _, password = before.partition(":")
        endpoint.login = [decoded(word) for word in (user, password) if word]
    if endpoint.database and not endpoint.database.isdigit():
        raise ValueError(f"not a number of a database: {endpoint.database}")
    return endpoint


def is_local(url: str) -> bool:
    """Tell whether hooks can connect to the URL: a socket or a loopback address, without TLS."""
    if url.startswith(("/", "unix://")):
        return True
    if not url.startswith("redis://"):
        return False
    place = url.removeprefix("redis://").rpartition("@")[2].partition("/")[0]
    if place == "[::1]" or place.startswith("[::1]:"):
        return True
    # Digits only: `127.0.0.1.example.org` is a host name and may be any machine.
    host = place.partition(":")[0]
    return host.startswith("127.") and host.replace(".", "").isdigit()


def wake_up(runtime: str) -> bool:
    """Notify the process that drains the spool; return False if no process is listening."""
    client = socket(AF_UNIX, SOCK_DGRAM)
    try:
        client.setblocking(False)
        client.connect(f"{runtime}/{BELL}")
        client.send(b"!")
    except BlockingIOError:  # the buffer is full: notifications are pending already
        return True
    except OSError:
        return False
    finally:
        client.close()
    return True


def decoded(text: str) -> str:
    """Decode percent escapes such as %40."""
    head, *parts = text.split("%")
    data = head.encode("utf-8", "surrogateescape")
    for part in parts:
        data += bytes.fromhex(part[:2]) + part[2:].encode("utf-8", "surrogateescape")
    return data.decode("utf-8", "surrogateescape")


def shown(url: str) -> str:
    """Return a URL without its password."""
    scheme, _, rest = url.partition("://")
    before, at, after = rest.rpartition("@")
    return f"{scheme}://{before.partition(':')[0]}:***@{after}" if at else url
