"""Use an existing Redis: check that it is suitable and that no other program uses it.

    hivepipe:owner    string    "<id> <home> on <host>"; the id is in the home's record

The first `up` sets the key, and no other home overwrites it. A running stack sets it again if Redis
has lost it.
"""

import os
import re
import socket
from typing import Any
from urllib.parse import SplitResult, parse_qsl, urlsplit

import redis

from hivepipe.errors import StackError
from hivepipe.home import read_record
from hivepipe.queue import endpoint
from hivepipe.queue.claims import accounts
from hivepipe.queue.connection import connect
from hivepipe.queue.full_memory import unless_full
from hivepipe.queue.names import ALL_QUEUES
from hivepipe.queue.scripts import script
from hivepipe.queue.ticks import SCHEDULED_KEY
from hivepipe.stack.listening import ANSWER_SECS
from hivepipe.stack.redis_server import OLDEST

OWNER = "hivepipe:owner"
_SCHEMES = ("redis", "rediss", "unix")
_FILES = ("ssl_ca_certs", "ssl_ca_path", "ssl_certfile", "ssl_keyfile")
_OPTIONS = ("db", *_FILES, "ssl_password", "ssl_cert_reqs", "ssl_check_hostname", "ssl_ciphers")
_TRY_WRITE = script("try_write")
# More commands of hooks and workers. They change nothing, because the key does not exist.
_NO_CHANGE = """
EXPIRE key 1/PERSIST key/SCAN 0/TIME/TYPE key/SET key 1 XX/SREM key 1/SUNIONSTORE key key
HDEL key 1/HEXISTS key 1/HGET key 1/HGETALL key/HMGET key 1/LINDEX key 0/LLEN key/LPOS key 1
LRANGE key 0 0/LREM key 1 1/LTRIM key 0 0/XADD key NOMKSTREAM * 1 1/XREVRANGE key + -
ZADD key XX 1 1/ZCARD key/ZCOUNT key 0 1/ZRANGE key 0 0/ZRANGEBYSCORE key 0 1/ZREM key 1
ZREMRANGEBYSCORE key 0 1/ZREVRANGE key 0 0/ZSCORE key 1
"""
# Texts that Redis 6.2, Redis 7 and redis-py add to an error in a script or a transaction.
_ADDED = re.compile(
    r".*@user_script: ?\d+: -?| script: [0-9a-f]+, on @user_script:.*|.* of pipeline caused error: "
)
_UNFINISHED = ("waiting", "running", "retrying", "failed")
_LOOPBACK = ("localhost", "ip6-localhost")
_QUEUE_KEYS = {f"rq:queue:{name}" for name in ALL_QUEUES}


def canonical(url: str) -> str:
    """Return a URL in the form in which it is recorded. Raise StackError for an unusable URL."""
    try:
        parts = urlsplit(url)
        port = parts.port or endpoint.PORT
    except ValueError as error:
        raise StackError(f"{endpoint.shown(url)} is not an address of a Redis: {error}") from None
    if parts.scheme not in _SCHEMES:
        raise StackError(
            f"{endpoint.shown(url)} is not an address of a Redis: it must begin with redis://, "
            "rediss:// or unix:// (Sentinel and Cluster are not supported)"
        )
    _refuse_options(parts)
    if parts.scheme == "redis" and parts.hostname in _LOOPBACK:
        login = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
        url = parts._replace(netloc=f"{login}127.0.0.1:{port}").geturl()
    if not url.isprintable():
        raise StackError("the address of Redis holds unprintable characters")
    if parts.scheme != "rediss" and endpoint.is_local(url):
        try:
            endpoint.parse(url)
        except ValueError as error:
            raise StackError(
                f"{endpoint.shown(url)} is not an address of a Redis: {error}"
            ) from None
    return url


def _refuse_options(parts: SplitResult) -> None:
    """Raise StackError if the URL has an unknown option, or an option names an unusable file.

    The path of a file must be absolute, and the user must be able to read the file.
    """
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in _OPTIONS:
            known = ", ".join(_OPTIONS)
            raise StackError(f"the address of Redis has the option {name}; known are: {known}")
        if name in _FILES and not (os.path.isabs(value) and os.access(value, os.R_OK)):
            raise StackError(f"{name}={value} is not an absolute path that you can read")


def claim(url: str, home: str, owner: str) -> list[str]:
    """Claim a Redis for this home by an owner id; return warnings for the user.

    Raise StackError if the Redis cannot be reached, is a cluster or too old, or is used by another
    home or program.
    """
    name = endpoint.shown(url)
    try:
        with connect(url) as connection:
            warnings = _refuse_unfit(connection, name)
            _try_commands(connection)
            _become_owner(connection, name, home, owner)
            return warnings
    except redis.RedisError as error:
        raise StackError(_described(url, error)) from None


def trouble(url: str) -> str:
    """Return why a Redis refuses hivepipe's scripts now, or ""; full memory is not detected."""
    try:
        with connect(url, limit_secs=ANSWER_SECS) as connection:
            _try_commands(connection)
    except redis.RedisError as error:
        return _described(url, error)
    return ""


def _try_commands(connection: redis.Redis) -> None:
    """Try the commands of hooks and workers that a server may refuse. Nothing is changed."""
    connection.eval(_TRY_WRITE, 0)
    connection.evalsha(connection.script_load(_TRY_WRITE), 0)
    with unless_full(), connection.pipeline() as transaction:
        transaction.blpop(["hivepipe:none"], 0.01)  # in a transaction BLPOP does not block
        for command in re.split("[/\n]", _NO_CHANGE.strip()):
            words = command.replace("key", "hivepipe:none").split()
            transaction.execute_command(*words)  # type: ignore[no-untyped-call]
        transaction.execute()


def _described(url: str, error: redis.RedisError) -> str:
    is_refusal = isinstance(error, redis.ResponseError | redis.AuthenticationError)
    reason = _ADDED.sub("", str(error)).rstrip(".")
    if isinstance(error, redis.AuthenticationError):
        # Without a password in the URL, the answer is about the protocol's command HELLO.
        reason = "it needs a password" if reason.startswith("HELLO ") else reason
        reason += ": run `hivepipe up -d --redis-url URL` with the right one"
    return f"{endpoint.shown(url)} {'refuses' if is_refusal else 'does not answer'}: {reason}"


def release(url: str, owner: str, with_jobs: bool) -> bool:
    """Remove the keys of this owner from an existing Redis; return whether all are removed.

    If jobs wait, run or have failed, all keys stay, unless `with_jobs` is set. Queues and jobs of
    other programs, which may use this Redis since it was claimed, always stay.
    """
    try:
        with connect(url) as connection:
            if _text(connection.get(OWNER)).partition(" ")[0] != owner:
                return True
            found = accounts(connection)
            if not with_jobs and any(found[kind] for kind in _UNFINISHED):
                return False
            _delete_own_keys(connection)
            return True
    except redis.RedisError:
        return False


def _delete_own_keys(connection: redis.Redis) -> None:
    """Delete hivepipe's keys. Beside another program's, those of ended processes expire later."""
    found = [*connection.scan_iter("rq:*", count=1000)]
    own = [key for key in found if _is_of_own_queue(connection, _text(key))]
    # A queue whose jobs are only scheduled is not listed yet.
    others = {key for key in found if key.startswith(b"rq:job:")}.difference(own)
    if others or _foreign_users(connection, is_new=False):
        found = own
        connection.srem("rq:queues", *_QUEUE_KEYS)
        connection.zrem(SCHEDULED_KEY, "", *[key.removeprefix(b"rq:job:") for key in found])
    for key in [*found, *connection.scan_iter("hivepipe:*", count=1000)]:
        connection.delete(key)


def _is_of_own_queue(connection: redis.Redis, key: str) -> bool:
    """Tell whether a key of RQ belongs to a queue of hivepipe, or to a job of such a queue."""
    _, kind, name = key.split(":", 2) if key.count(":") > 1 else ("", "", "")
    if kind in ("job", "results", "execution", "executions"):
        origin: Any = connection.hget(f"rq:job:{name.partition(':')[0]}", "origin")
        name = _text(origin)
    return name in ALL_QUEUES


def restore_owner_key(connection: redis.Redis, home: str) -> None:
    """Set the owner key again if Redis has lost its data.

    Without the key, the next `up` would report that another program owns this stack's queues.
    """
    owner = read_record(home).get("owner")
    if owner:
        connection.set(OWNER, _owner_text(owner, home), nx=True)


def _owner_text(owner: str, home: str) -> str:
    return f"{owner} {home} on {socket.gethostname()}"


def _refuse_unfit(connection: redis.Redis, name: str) -> list[str]:
    info: Any = connection.info()
    if info.get("cluster_enabled"):
        raise StackError(f"{name} is a Redis Cluster, which RQ does not support: use one server")
    version = str(info.get("redis_version", "0.0"))
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        raise StackError(f"{name} is Redis {version}: 6.2 or later is needed")
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        return [f"{name} may evict events when it is full: its maxmemory-policy is {policy}"]
    return []


def _become_owner(connection: redis.Redis, name: str, home: str, ours: str) -> None:
    # A full Redis refuses to set the key even if it exists.
    is_new = not connection.exists(OWNER) and bool(
        connection.set(OWNER, _owner_text(ours, home), nx=True)
    )
    owner = _text(connection.get(OWNER))
    if owner.partition(" ")[0] != ours:
        raise StackError(
            f"{name} belongs to another home: {owner.partition(' ')[2]}. Use a database of its own "
            f"(redis://host:port/7), or, if that home no longer exists, delete the key {OWNER}"
        )
    foreign = _foreign_users(connection, is_new)
    if foreign:
        if is_new:
            connection.delete(OWNER)
        raise StackError(
            f"{name} is used by another program ({', '.join(foreign[:5])}): "
            "use a database of its own (redis://host:port/7)"
        )


def _foreign_users(connection: redis.Redis, is_new: bool) -> list[str]:
    """Return the RQ queues and workers of other programs.

    With `is_new`, this home has not used the Redis yet, so all queues and workers are foreign.
    """
    queues: Any = connection.smembers("rq:queues")
    found = [_text(queue) for queue in queues if is_new or _text(queue) not in _QUEUE_KEYS]
    workers: Any = connection.smembers("rq:workers")
    for worker in workers:
        served: Any = connection.hget(_text(worker), "queues")
        names = {f"rq:queue:{name}" for name in _text(served).split(",") if name}
        if is_new or names - _QUEUE_KEYS:
            found.append(_text(worker))
    return sorted(found)


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "")
