"""How the C library keeps memory: it would keep what is freed, for each thread apart."""

import ctypes

_LIBRARY = ctypes.CDLL(None)
_set = getattr(_LIBRARY, "mallopt", None)  # both are of glibc
_trim = getattr(_LIBRARY, "malloc_trim", None)
_MMAP_THRESHOLD, _ARENA_MAX = -3, -8  # its names for them
_LARGE_BYTES = 64 << 10  # such as a page


def save_memory() -> None:
    """Have all threads share one arena, and large texts be apart from it."""
    if _set:
        _set(_ARENA_MAX, 1)
        _set(_MMAP_THRESHOLD, _LARGE_BYTES)


def give_back() -> None:
    """Give back to the system what is free."""
    if _trim:
        _trim(0)
