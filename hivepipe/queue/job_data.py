"""Decode the data of an RQ job safely: unpickling resolves no global and runs no code.

A pickle is a program, and its author may be a hook, one of RQ's tools or an attacker. The pickle of
a hivepipe job holds a tuple of plain values.
"""

import io
import pickle
import pickletools
import zlib

from hivepipe.errors import BadEnvelopeError
from hivepipe.jobs.envelope import Envelope, read_envelope
from hivepipe.queue.claims import Claimed
from hivepipe.queue.client import FUNCTION, HEAD, TAIL, job_data

LIMIT_BYTES = 1 << 20

_FRAME_BYTES = 11  # pickle's opcodes PROTO and FRAME, with the protocol and the length
_PLAIN = frozenset(
    {
        *("PROTO", "FRAME", "MARK", "STOP", "MEMOIZE", "BINGET", "NONE"),
        *("SHORT_BINUNICODE", "BINUNICODE", "EMPTY_DICT", "EMPTY_TUPLE"),
        *("TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"),
    }
)


class PlainUnpickler(pickle.Unpickler):
    """An unpickler that accepts plain values only."""

    def find_class(self, module: str, name: str) -> object:
        raise BadEnvelopeError(f"the pickle names {module}.{name}")

    def persistent_load(self, pid: object) -> object:
        raise BadEnvelopeError("the pickle has an external reference")


def read_claimed(job: Claimed) -> Envelope:
    """Return the envelope of a claimed job. Raise BadEnvelopeError if hivepipe did not make it."""
    if not job.is_ours:
        raise BadEnvelopeError("the job does not carry hivepipe's marker")
    return read_envelope(envelope_text(job.data))


def envelope_text(data: bytes) -> str:
    """Return the envelope in a job's data, its only argument, or raise BadEnvelopeError."""
    if len(data) > LIMIT_BYTES:
        raise BadEnvelopeError(f"{len(data)} bytes of data, more than any job of hivepipe has")
    ours = as_written(data)
    if ours is not None:
        return ours
    try:
        pickled = inflated(data)
        _check_opcodes(pickled)
        value = PlainUnpickler(io.BytesIO(pickled)).load()
    except BadEnvelopeError:
        raise
    except Exception as error:  # noqa: BLE001  a pickle can raise any exception
        raise BadEnvelopeError(f"the data is not a pickle: {type(error).__name__}") from None
    match value:
        case (str(function), None, (str(text),), dict(keywords)) if not keywords:
            if function != FUNCTION:
                raise BadEnvelopeError(f"the function is {function[:100]!r}, not {FUNCTION}")
            return text
        case _:
            raise BadEnvelopeError("the data is not one call with one text")


def as_written(data: bytes) -> str | None:
    """Return the envelope if a job's data has exactly the form that hooks write, else None."""
    body = data[_FRAME_BYTES:]
    if not body.startswith(HEAD) or not body.endswith(TAIL):
        return None
    argument = body[len(HEAD) : -len(TAIL)]
    text = argument[2:] if argument[:1] == b"\x8c" else argument[5:]
    try:
        envelope = text.decode("ascii")
    except UnicodeDecodeError:
        return None
    return envelope if job_data(envelope) == data else None


def _check_opcodes(pickled: bytes) -> None:
    """Raise BadEnvelopeError if an opcode is not in _PLAIN.

    Other opcodes can do harm without a global: a single LONG_BINPUT can take gigabytes.
    """
    for opcode, _, _ in pickletools.genops(pickled):
        if opcode.name.endswith("GLOBAL"):
            raise BadEnvelopeError("the pickle names something to be run")
        if opcode.name not in _PLAIN:
            raise BadEnvelopeError(f"the pickle does more than hold values: {opcode.name}")


def inflated(data: bytes) -> bytes:
    """Return a job's uncompressed data, or raise BadEnvelopeError above LIMIT_BYTES.

    RQ compresses data, hooks do not.
    """
    if data[:1] != b"\x78":
        return data
    inflater = zlib.decompressobj()
    text = inflater.decompress(data, LIMIT_BYTES)
    if inflater.unconsumed_tail:
        raise BadEnvelopeError("the data inflates to more than any job of hivepipe has")
    return text
