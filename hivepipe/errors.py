"""The errors of hivepipe. Their messages are for people: a command prints one and exits with 1."""

from collections.abc import Iterator
from contextlib import contextmanager

NO_MEMORY = "not enough memory (ulimit -v, or the limit of a container)"
INSTALL_AGAIN = "install hivepipe again, with its requirements.lock"
NEEDS_PACKAGES = f"needs packages that are missing: {INSTALL_AGAIN}"


class HivepipeError(Exception):
    """Something went wrong in hivepipe."""

    def __init__(self, message: str = "") -> None:
        """Set the message, by default the docstring of the class."""
        super().__init__(message or (type(self).__doc__ or type(self).__name__).strip())


class NoRedisServerError(HivepipeError):
    """No Redis or Valkey server (6.2 or later) was found."""


class TreeError(HivepipeError):
    """Data in a work tree cannot be used or moved."""


class RegistrationError(HivepipeError):
    """This folder cannot be registered."""


class MigrationError(HivepipeError):
    """Something prevents the migration or import of a predecessor's data."""


class StackError(HivepipeError):
    """The stack could not be started or stopped."""


class SettingsError(HivepipeError):
    """Settings cannot be changed, or do not apply in full."""


class LockHeldError(HivepipeError):
    """Another process holds this lock."""


class SearchError(HivepipeError):
    """The search index cannot be used."""


class StoreError(HivepipeError):
    """The database cannot be used."""


class NothingRecordedError(StoreError):
    """There is no database yet."""

    def __init__(self, path: object) -> None:
        """Set the message; `path` is where the database will be created."""
        super().__init__(
            f"nothing is recorded yet: {path} is created when the first event is stored "
            "(`hivepipe status` says whether events wait, `hivepipe doctor` checks the hooks)"
        )


class DamagedLedgerError(StoreError):
    """The ledger of costs is damaged."""


class BackupError(HivepipeError):
    """A backup cannot be made or restored."""


class PricesError(HivepipeError):
    """The price table cannot be read."""


class GuardError(HivepipeError):
    """A file to replay cannot be read, or has neither a transcript nor hook events."""


class RedactionRuleError(HivepipeError):
    """A redaction rule cannot be used."""


class TaskError(HivepipeError):
    """The task does not exist, or it cannot be changed."""


class HiveError(HivepipeError):
    """A hive, a worker or an argument cannot be used as the command needs it."""


class MemoryIndexError(HivepipeError):
    """The index of memory files cannot be used, or has no such entry."""


class EmbeddingError(HivepipeError):
    """The provider of embeddings gave no answer, or an invalid one."""


class ProfileError(HivepipeError):
    """A profile or one of its files is invalid."""


class TeamError(HivepipeError):
    """Something is wrong with the team's server or this machine's membership."""


class TeamAwayError(TeamError):
    """The team's server does not answer now; another attempt may work."""


class TeamRefusedError(TeamError):
    """The team's server refuses this machine, or is not the expected server."""


class TeamDataError(TeamError):
    """The team's server rejects a value."""


class ArchiveError(HivepipeError):
    """The archive does not exist."""


class DamagedArchiveError(ArchiveError):
    """The lines of an archive cannot be read, or some of them are missing."""


class EditedArchiveError(ArchiveError):
    """Another program changed an archive, which hivepipe leaves unchanged."""


class RetentionError(HivepipeError):
    """The section `[retention]` of a config.toml cannot be used."""


class RefusedTranscriptError(HivepipeError):
    """The file is not a transcript, or not in a folder for transcripts."""


class StoppedError(HivepipeError):
    """The process was told to stop; the job continues at its next attempt."""


class CredentialsError(HivepipeError):
    """The credentials cannot be used."""


class SummaryError(HivepipeError):
    """There is nothing to summarise, or the summary failed."""


class AnswerError(SummaryError):
    """A language model's answer does not have the form that was asked for."""


class TryLaterError(HivepipeError):
    """The job cannot run now; the error says when to try again."""

    def __init__(self, message: str, delay_secs: float) -> None:
        """Set up; `delay_secs` is the delay before the next attempt."""
        super().__init__(message)
        self.delay_secs = delay_secs


class JobError(HivepipeError):
    """The job itself is at fault, so another attempt would fail too."""


class OperationFailedError(JobError):
    """The function of an installed operation failed; the error has the number of retries."""

    def __init__(self, message: str, retries: int) -> None:
        """Set up; `retries` is the number of retries before the job counts as failed."""
        super().__init__(message)
        self.retries = retries


class BadEnvelopeError(JobError):
    """The envelope cannot be read."""


class NewerEnvelopeError(BadEnvelopeError):
    """A newer hivepipe wrote the envelope, and only a newer one can read it."""

    def __init__(self, version: int) -> None:
        """Set the message; `version` is the envelope's version."""
        super().__init__(f"a newer hivepipe wrote it (version {version}): upgrade this one")
        self.version = version


class UnknownOperationError(JobError):
    """No handler is registered for the operation."""


class MissingParentError(JobError):
    """A row's parent row does not exist; the job of the parent may still be waiting."""


@contextmanager
def os_error_as(kind: type[HivepipeError], what: str) -> Iterator[None]:
    """Turn an OSError in the `with` block into a `kind` with the message "`what`: reason"."""
    try:
        yield
    except OSError as error:
        raise kind(f"{what}: {error.strerror}") from error


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether no memory was left, for Python or for a library that it loads."""
    no_room = isinstance(error, ImportError) and "failed to map segment" in str(error)
    return no_room or isinstance(error, MemoryError)


def reason_of(error: BaseException) -> str:
    """Return the type and text of an error of a job; name a lack of memory, which has no text."""
    return NO_MEMORY if is_out_of_memory(error) else f"{type(error).__name__}: {error}"
