"""The retry table: the delay before the next attempt of a job, and the attempt's priority.

    the job's parent is missing            0.1, 0.2, 0.4 s, then failed
    the store cannot be written            0.1, 0.2, 0.4 s, then 1, 2, 4 ... 30 s without a limit
    a file cannot be read or written       1, 5, 30, 120 s, then failed; with a full or read-only
                                           disk 120 s without a limit
    memory is lacking                      1, 5, 30, 120 s, then failed
    a language model is down or busy       about 15, 60, 240 s, or as the provider asks; then a
                                           summary without a model
    an installed operation failed          1, 5, 30, then 120 s each, as often as it declares
    any other error of the job             failed at once

In the first two rows, each of the first three attempts makes the job one step less urgent, down to
priority 10. A limit counts failures of the job itself. A failure of the store or a full disk does
not count.
"""

import errno
import sqlite3

from hivepipe.errors import StoreError
from hivepipe.files.disk_room import FULL
from hivepipe.times import backoff_secs

FIRST_SECS = (0.1, 0.2, 0.4)
LONGEST_SECS = 30.0
FILE_SECS = (1.0, 5.0, 30.0, 120.0)
LLM_SECS = 15.0
LOWEST_PRIORITY = 10
DISK_ERRORS = frozenset({*FULL, errno.EROFS, errno.EIO})

_OF_A_JOB = (
    sqlite3.DataError,
    sqlite3.IntegrityError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
)
# Texts of an OperationalError that a statement's values cause: the job failed, not the store
_OF_VALUES = ("integer overflow", "malformed JSON")


def is_store_error(error: Exception) -> bool:
    """Tell whether the store failed (locked, full, damaged or missing) and not the job.

    An error caused by a job's values, such as the overflow of a sum, is an error of the job. As an
    error of the store it would block all other jobs forever. A table or column that an older
    database lacks is an error of the store, because it fails all jobs.
    """
    is_of_job = isinstance(error, _OF_A_JOB) or str(error) in _OF_VALUES
    return isinstance(error, sqlite3.Error | StoreError) and not is_of_job


def store_delay_secs(attempts: int) -> float:
    """Return the delay in seconds after this many failures of the store."""
    if attempts <= len(FIRST_SECS):
        return FIRST_SECS[attempts - 1]
    return backoff_secs(1.0, attempts - len(FIRST_SECS) - 1, LONGEST_SECS)


def parent_delay_secs(attempts: int) -> float | None:
    """Return the delay in seconds while a parent is missing, or None to let the job fail."""
    return FIRST_SECS[attempts - 1] if attempts <= len(FIRST_SECS) else None


def file_delay_secs(attempts: int, is_disk_error: bool) -> float | None:
    """Return the delay in seconds after this many file errors, or None to let the job fail."""
    if attempts <= len(FILE_SECS):
        return FILE_SECS[attempts - 1]
    return FILE_SECS[-1] if is_disk_error else None


def operation_delay_secs(attempts: int, retries: int) -> float | None:
    """Return an installed operation's delay in seconds, or None after `retries` retries."""
    return FILE_SECS[min(attempts, len(FILE_SECS)) - 1] if attempts <= retries else None


def llm_delay_secs(failures: int, chance: float, requested_secs: float) -> float:
    """Return the delay in seconds after this many failures of a provider.

    The random number `chance` (0 to 1) makes the delay 0.5 to 1.5 times the base delay, so that
    jobs do not return together. The delay is at least `requested_secs`, which the provider asked
    for.
    """
    return max(requested_secs, LLM_SECS * 4.0 ** (failures - 1) * (0.5 + chance))


def demoted(priority: int, attempts: int) -> int:
    """Return the priority of a job, originally `priority`, after this many failures."""
    return min(priority + min(attempts, len(FIRST_SECS)), LOWEST_PRIORITY)
