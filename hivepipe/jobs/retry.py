"""The retry table: the delay of the next attempt, and the priority then.

    the job's parent may be on its way     0.1, 0.2, 0.4 s, then dead
    the store is at fault                  0.1, 0.2, 0.4 s, then 1, 2, 4 ... 30 s without a limit
    a file cannot be read or written       1, 5, 30, 120 s, then dead; a full or read-only disk:
                                           120 s without a limit
    a language model is away, or busy      about 15, 60, 240 s, or as it asks; then done without
    an installed operation failed          1, 5, 30, then each 120 s, as often as it declares
    any other fault of the job             dead at once

Each of the first three attempts in the first two rows lowers the priority by one, never past 10.
A limit counts failures of the job itself: no fault of the store or a full disk brings a job closer
to it.
"""

import errno

FIRST_SECS = (0.1, 0.2, 0.4)
LONGEST_SECS = 30.0
FILE_SECS = (1.0, 5.0, 30.0, 120.0)
LLM_SECS = 15.0
LOWEST_PRIORITY = 10
DISKS_FAULT = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO})


def store_delay_secs(attempts: int) -> float:
    """Return the delay in seconds after this many failures of the store."""
    if attempts <= len(FIRST_SECS):
        return FIRST_SECS[attempts - 1]
    return min(2.0 ** min(attempts - len(FIRST_SECS) - 1, 10), LONGEST_SECS)


def parent_delay_secs(attempts: int) -> float | None:
    """Return the delay in seconds while a parent is missing; None: the job is dead."""
    return FIRST_SECS[attempts - 1] if attempts <= len(FIRST_SECS) else None


def file_delay_secs(attempts: int, is_disks_fault: bool) -> float | None:
    """Return the delay in seconds after this many failures with a file; None: the job is dead."""
    if attempts <= len(FILE_SECS):
        return FILE_SECS[attempts - 1]
    return FILE_SECS[-1] if is_disks_fault else None


def operation_delay_secs(attempts: int, retries: int) -> float | None:
    """Return the delay in seconds after this many failures of an installed operation, or None."""
    return FILE_SECS[min(attempts, len(FILE_SECS)) - 1] if attempts <= retries else None


def llm_delay_secs(failures: int, chance: float, requested_secs: float) -> float:
    """Return the delay in seconds after this many failures of a provider; `chance`: 0 to 1.

    Jitter gives half to one and a half times the base delay, so that jobs do not return together.
    The delay is never below `requested_secs`, which the provider asked for.
    """
    return max(requested_secs, LLM_SECS * 4.0 ** (failures - 1) * (0.5 + chance))


def demoted(priority: int, attempts: int) -> int:
    """Return the priority of a job after this many failures, from its original priority."""
    return min(priority + min(attempts, len(FIRST_SECS)), LOWEST_PRIORITY)
