"""hivepipe: the background pipeline behind Claude Code hooks.

The names in `__all__` are the public Python API (docs/python.md). These names are imported on first
use, because a hook imports this package on every event.
"""

_API = {
    "Conversation": "reading.conversation",
    "HivepipeError": "errors",
    "Listings": "db.listings",
    "Orchestrator": "orchestrator.orchestrator",
    "TimeLine": "reading.time_line",
    "conversation": "reading.conversation",
    "database_path": "db.location",
    "listings": "db.listings",
    "locate": "home",
    "operation": "operations.custom",
    "redact_text": "redact",
    "session_named": "reading.session_lookup",
    "time_line": "reading.time_line",
    "use_rules": "redact.configured",
}

__all__ = [*_API]


def __getattr__(name: str) -> object:
    if name not in _API:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415  a hook never gets here

    module = import_module(f"{__name__}.{_API[name]}")
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_API})
