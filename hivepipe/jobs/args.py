"""The arguments of operations: one frozen class declares each operation.

    class RecordGoal(Args, handler="history.record_goal"):
        trigger: str = ""

The operation has the name of its handler's function, `record_goal`. The fields are the keys of the
job's payload. `read` checks a payload. A missing field or null becomes the default, and an unknown
field is ignored, so that jobs of other releases can be read.
"""

from collections.abc import Mapping
from types import UnionType
from typing import Annotated, Any, ClassVar, NamedTuple, Self, dataclass_transform, get_origin

from hivepipe.errors import BadEnvelopeError
from hivepipe.events.claude_code import valid_id
from hivepipe.events.job_plan import PRIORITIES, Job

Id = Annotated[str, valid_id]


HERE = ""  # queue of an operation that the writer executes outside its transaction


class Every(NamedTuple):
    """The schedule of a periodic operation. `why` says what happens if the operation does not run.

    `fallback_for` names a worker that does this work itself. The scheduler enqueues the job only
    while that worker does not run.
    """

    interval_secs: int
    name: str
    why: str
    fallback_for: str = ""


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Args:
    """Base class of all arguments. A subclass with a `handler` declares an operation."""

    operation: ClassVar[str] = ""
    handler: ClassVar[str] = ""
    priority: ClassVar[int] = 0
    queue: ClassVar[str | None] = None
    without_session: ClassVar[bool] = False
    every: ClassVar[Every | None] = None
    _types: ClassVar[dict[str, tuple[type, ...]]] = {}
    _ids: ClassVar[frozenset[str]] = frozenset()
    _required: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(
        cls,
        handler: str = "",
        priority: int = 0,
        queue: str | None = None,
        without_session: bool = False,
        every: Every | None = None,
    ) -> None:
        """Declare an operation.

        `handler` is module.function below hivepipe.operations, imported at its first use.
        `priority` is 1 for the most urgent jobs. The priorities of operations that hooks plan are
        in PRIORITIES. `queue` is None if the writer executes the operation in its transaction. With
        `without_session`, the rows of the operation belong to no session, or name a session
        themselves.
        """
        types = {name: _classes(hint) for name, hint in cls.__annotations__.items()}
        cls._types = {**cls._types, **types}
        cls._ids |= {name for name, hint in cls.__annotations__.items() if hint is Id}
        cls._required = frozenset(name for name in cls._types if not hasattr(cls, name))
        if handler:
            cls.operation, cls.handler, cls.queue = handler.rpartition(".")[2], handler, queue
            cls.priority = priority or PRIORITIES[cls.operation]
            cls.without_session, cls.every = without_session, every
            ARGS[cls.operation] = cls

    # Not a dataclass: to create forty of them is a tenth of a short process' start-up time.
    def __init__(self, **values: Any) -> None:
        """Set the fields that `values` names. The other fields have their defaults.

        Raise TypeError if a name is unknown, or a field without a default is missing.
        """
        if wrong := (values.keys() - self._types.keys()) | (self._required - values.keys()):
            raise TypeError(f"{type(self).__name__}: {', '.join(sorted(wrong))}")
        self.__dict__.update(values)

    def __setattr__(self, name: str, _value: object) -> None:
        raise AttributeError(f"{name} cannot be set")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.payload() == other.payload()

    def __hash__(self) -> int:
        raise TypeError(f"{type(self).__name__} cannot be hashed")

    def __repr__(self) -> str:
        """Return class and fields in the form of a call, such as RecordGoal(trigger='auto')."""
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._types)
        return f"{type(self).__name__}({fields})"

    @classmethod
    def read(cls, payload: Mapping[str, Any]) -> Self:
        """Return the arguments of a payload. Raise BadEnvelopeError if a value is not valid."""
        values = {
            name: cls._checked(name, payload[name])
            for name in cls._types
            if payload.get(name) is not None
        }
        if missing := cls._required - values.keys():
            raise BadEnvelopeError(f"{', '.join(sorted(missing))} is missing")
        return cls(**values)

    @classmethod
    def _checked(cls, name: str, value: object) -> object:
        kinds = cls._types[name]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise BadEnvelopeError(f"{name} is of the wrong type: {type(value).__name__}")
        if name not in cls._ids:
            return value
        id = valid_id(str(value))
        if not id:
            raise BadEnvelopeError(f"{name} is not a valid id")
        return id

    def payload(self) -> dict[str, object]:
        """Return the payload without the fields whose value is None."""
        values = {name: getattr(self, name) for name in self._types}
        return {name: value for name, value in values.items() if value is not None}

    def job(self, subject: str = "") -> Job:
        """Return a job with these arguments; `subject` describes the job for people."""
        return Job(self.operation, self.payload(), subject)

    def cleanup_cause(self) -> str:
        """Return the trigger of the cleanup that this job causes, or ""."""
        return ""


ARGS: dict[str, type[Args]] = {}  # operation -> its arguments, if they are imported


def priority_of(operation: str) -> int:
    """Return the priority of an operation. Raise KeyError if it is unknown."""
    return PRIORITIES.get(operation) or ARGS[operation].priority


def _classes(hint: Any) -> tuple[type, ...]:
    """Return the classes of an annotation, for isinstance."""
    parts = hint.__args__ if isinstance(hint, UnionType) else (hint,)
    return tuple(str if part is Id else get_origin(part) or part for part in parts)
