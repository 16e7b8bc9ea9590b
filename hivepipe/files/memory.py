"""Settings of glibc's malloc, which by default keeps freed memory in an arena per thread."""

import ctypes

_LIBRARY = ctypes.CDLL(None)
_set = getattr(_LIBRARY, "mallopt", None)  # only glibc has mallopt
_trim = getattr(_LIBRARY, "malloc_trim", None)
_MMAP_THRESHOLD, _ARENA_MAX = -3, -8  # M_MMAP_THRESHOLD and M_ARENA_MAX in malloc.h
_LARGE_BYTES = 64 << 10  # bytes of a large text, such as a page


def save_memory() -> None:
    """Let all threads share one malloc arena, and allocate large texts outside this arena."""
    if _set:
        _set(_ARENA_MAX, 1)
        _set(_MMAP_THRESHOLD, _LARGE_BYTES)


def release_memory() -> None:
    """Return freed pages to the system."""
    if _trim:
        _trim(0)
