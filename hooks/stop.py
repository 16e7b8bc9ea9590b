"""The hook that Claude Code runs on Stop, with the event on stdin."""

import sys

try:
    sys.path.append(__file__.rsplit("/", 3 if "/_hooks/" in __file__ else 2)[0])
    from hivepipe.hook.run import run

    run("Stop")
except BaseException:  # noqa: BLE001  a broken installation must not stop Claude Code
    pass
