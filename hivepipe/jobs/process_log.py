"""Logging of a stack's processes: lines of text, or JSON objects with the current job.

Every line is redacted, because error texts may contain user data. The time and the job of a line
are not redacted.

HIVEPIPE_LOG_FORMAT=json    at, level, process, logger, text; job, operation, session; traceback
"""

import json
import logging
from contextvars import ContextVar
from datetime import UTC, datetime

from hivepipe.redact import redact_text
from hivepipe.redact.fields import redact_fields
from hivepipe.settings import variable

_TEXT = "%(asctime)s %(levelname)s %(message)s"
_NAMES = ("job", "operation", "session")
_about: ContextVar[tuple[str, str, str]] = ContextVar("about", default=("", "", ""))


def about_job(id: str = "", operation: str = "", session: str = "") -> None:
    """Set the job that later log lines name; without arguments, later lines name no job."""
    _about.set((id, operation, session))


class TextLines(logging.Formatter):
    """Formats a line of text, followed by its traceback."""

    def __init__(self) -> None:
        """Set the format. Lines do not name the process, because each process has its own file."""
        super().__init__(_TEXT)

    def format(self, record: logging.LogRecord) -> str:
        head = f"{self.formatTime(record)} {record.levelname} "
        return head + redact_text(super().format(record).removeprefix(head))


class JsonLines(logging.Formatter):
    """Formats one JSON object per line, without fields of unknown value."""

    def __init__(self, process: str) -> None:
        """`process` is the name of the process in the stack."""
        super().__init__()
        self._process = process

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = {
            "at": at.replace("+00:00", "Z"),
            "level": record.levelname,
            "process": self._process,
            "logger": record.name,
            "text": record.getMessage(),
        }
        fields |= {name: value for name, value in zip(_NAMES, _about.get(), strict=True) if value}
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(redact_fields(fields))


def set_up(process: str) -> None:
    """Configure the logging of this process from the settings."""
    handler = logging.StreamHandler()
    is_json = variable("HIVEPIPE_LOG_FORMAT") == "json"
    handler.setFormatter(JsonLines(process) if is_json else TextLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
