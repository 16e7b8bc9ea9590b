"""uvicorn without its command line, which would take a tenth of an idle server's memory."""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

_COMMAND = "uvicorn.main"


def _parts() -> tuple[Any, Any]:
    if "uvicorn" not in sys.modules:
        empty = sys.modules[_COMMAND] = ModuleType(_COMMAND)
        empty.__getattr__ = lambda _name: None  # type: ignore[method-assign]
        import_module("uvicorn")
        del sys.modules[_COMMAND]
    return import_module("uvicorn.config").Config, import_module("uvicorn.server").Server


if TYPE_CHECKING:
    from uvicorn import Config, Server
else:
    Config, Server = _parts()

__all__ = ["Config", "Server"]
