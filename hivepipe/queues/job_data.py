"""Read the data of an RQ job without trusting it: no global is resolved, nothing is run.

A pickle is a program. Ours holds a tuple of plain values, whoever wrote it: hooks by hand, RQ's
own tools, or somebody who wants to harm.
"""

import io
import pickle
import zlib

from hivepipe.errors import BadEnvelopeError
from hivepipe.queues.client import FUNCTION

LIMIT_BYTES = 1 << 20


class _NoGlobals(pickle.Unpickler):
    """An unpickler for plain values."""

    def find_class(self, module: str, name: str) -> object:
        """Refuse every name."""
        raise BadEnvelopeError(f"the pickle names {module}.{name}")

    def persistent_load(self, pid: object) -> object:
        """Refuse every reference."""
        raise BadEnvelopeError("the pickle refers to something outside")


def envelope_text(data: bytes) -> str:
    """Return the one argument of the one function we run; BadEnvelopeError says what else it is."""
    if len(data) > LIMIT_BYTES:
        raise BadEnvelopeError(f"{len(data)} bytes of data, more than any job of ours has")
    try:
        value = _NoGlobals(io.BytesIO(_inflated(data))).load()
    except BadEnvelopeError:
        raise
    except Exception as error:  # noqa: BLE001  a pickle can raise whatever it likes
        raise BadEnvelopeError(f"the data is no pickle: {type(error).__name__}") from None
    match value:
        case (str(function), None, (str(text),), dict(keywords)) if not keywords:
            if function != FUNCTION:
                raise BadEnvelopeError(f"the function is {function[:100]!r}, not {FUNCTION}")
            return text
        case _:
            raise BadEnvelopeError("the data is not one call with one text")


def _inflated(data: bytes) -> bytes:
    """RQ compresses, hooks do not; a few bytes of zlib can hold gigabytes."""
    if data[:1] != b"\x78":
        return data
    inflater = zlib.decompressobj()
    text = inflater.decompress(data, LIMIT_BYTES)
    if inflater.unconsumed_tail:
        raise BadEnvelopeError("the data inflates to more than any job of ours has")
    return text
