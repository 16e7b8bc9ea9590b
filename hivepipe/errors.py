"""The error tree; messages are meant for a person. The command line prints them and exits with 1.

HivepipeError
├── NoRedisServerError
├── RegistrationError
├── TreeError
├── MigrationError
├── StackError
├── SettingsError
├── LockHeldError
├── SearchError
├── StoreError
│   └── NothingRecordedError
├── BackupError
├── PricesError
├── RedactionRuleError
├── ArchiveError
│   ├── DamagedArchiveError
│   └── EditedArchiveError
├── RetentionError
├── RefusedTranscriptError
├── StoppedError
├── GuardError
├── TaskError
├── CredentialsError
├── SummaryError
│   └── AnswerError
├── TryLaterError
├── HiveError
├── MemoryIndexError
├── EmbeddingError
├── ProfileError
├── TeamError
│   ├── TeamAwayError
│   ├── TeamDataError
│   └── TeamRefusedError
└── JobError                 the job's own fault: it will fail again, whoever runs it
    ├── BadEnvelopeError
    │   └── NewerEnvelopeError   ... of this hivepipe: a later one can read it
    ├── UnknownOperationError
    ├── OperationFailedError ... it is retried as often as its declaration says
    └── MissingParentError   ... unless the parent is still on its way
"""


class HivepipeError(Exception):
    """Something went wrong in hivepipe."""

    def __init__(self, message: str = "") -> None:
        """Take the class's docstring where the raiser has nothing more exact to say."""
        super().__init__(message or (type(self).__doc__ or type(self).__name__).strip())


class NoRedisServerError(HivepipeError):
    """No Redis or Valkey server (6.2 or later) was found."""


class TreeError(HivepipeError):
    """What lies in the work tree is not, or may not be, what hivepipe put there."""


class RegistrationError(HivepipeError):
    """This folder cannot be registered."""


class MigrationError(HivepipeError):
    """What the predecessor left cannot be taken over like this."""


class StackError(HivepipeError):
    """The stack could not be started or stopped."""


class SettingsError(HivepipeError):
    """A settings file of Claude Code cannot be changed."""


class LockHeldError(HivepipeError):
    """Another process holds this lock."""


class SearchError(HivepipeError):
    """The search index cannot be used."""


class StoreError(HivepipeError):
    """The database cannot be used."""


class NothingRecordedError(StoreError):
    """There is no database yet."""

    def __init__(self, path: object) -> None:
        """`path`: where the database will be created."""
        super().__init__(
            f"nothing is recorded yet: {path} is created by the first event of a session "
            "(`hivepipe doctor` says whether the hooks are there)"
        )


class BackupError(HivepipeError):
    """It cannot be backed up or restored."""


class PricesError(HivepipeError):
    """The price table cannot be read."""


class GuardError(HivepipeError):
    """The guard cannot do this."""


class RedactionRuleError(HivepipeError):
    """A redaction rule cannot be used."""


class TaskError(HivepipeError):
    """There is no such task, or it cannot be changed."""


class HiveError(HivepipeError):
    """The hive cannot do this."""


class MemoryIndexError(HivepipeError):
    """The index of memory files cannot be used, or does not have this."""


class EmbeddingError(HivepipeError):
    """No vectors: the provider does not answer, or not as it should."""


class ProfileError(HivepipeError):
    """A profile, or one of its files, is not what it has to be."""


class TeamError(HivepipeError):
    """Something is wrong with the team's server or this machine's membership."""


class TeamAwayError(TeamError):
    """The team's server does not answer now; another attempt may work."""


class TeamRefusedError(TeamError):
    """The team's server does not want this machine, or is not the one that it must be."""


class TeamDataError(TeamError):
    """The team's server does not take a value."""


class ArchiveError(HivepipeError):
    """There is no such archive."""


class DamagedArchiveError(ArchiveError):
    """The lines of an archive cannot be read, or some of them are missing."""


class EditedArchiveError(ArchiveError):
    """Somebody else changed an archive: it is left as it is."""


class RetentionError(HivepipeError):
    """The section `[retention]` of a config.toml cannot be used."""


class RefusedTranscriptError(HivepipeError):
    """The file is not a transcript of Claude Code's, or not in a folder of its own."""


class StoppedError(HivepipeError):
    """The process was told to stop; the work goes on when it comes again."""


class CredentialsError(HivepipeError):
    """The credentials cannot be used."""


class SummaryError(HivepipeError):
    """There is nothing to summarise, or it cannot be done."""


class AnswerError(SummaryError):
    """A language model's answer does not have the form that was asked for."""


class TryLaterError(HivepipeError):
    """What the job needs is not to be had just now; it says itself when to come again."""

    def __init__(self, message: str, delay_secs: float) -> None:
        """`delay_secs`: not before."""
        super().__init__(message)
        self.delay_secs = delay_secs


class JobError(HivepipeError):
    """The job cannot be executed."""


class OperationFailedError(JobError):
    """The function of an installed operation failed."""

    def __init__(self, message: str, retries: int) -> None:
        """`retries`: how often the job is retried before it is dead."""
        super().__init__(message)
        self.retries = retries


class BadEnvelopeError(JobError):
    """The envelope cannot be read."""


class NewerEnvelopeError(BadEnvelopeError):
    """A later hivepipe wrote the envelope."""

    def __init__(self, version: int) -> None:
        """`version` is the envelope's."""
        super().__init__(f"a newer hivepipe wrote it (version {version}): upgrade this one")
        self.version = version


class UnknownOperationError(JobError):
    """No handler is registered for the operation."""


class MissingParentError(JobError):
    """The row that this one belongs to does not exist."""
