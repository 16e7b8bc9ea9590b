"""Importing how events are read changes nothing for other modules of the process."""

import subprocess
import sys


def test_json_can_be_imported_after_the_events() -> None:
    code = "import hivepipe.events, json; json.loads('{}'); json.JSONDecoder()"
    subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"],
        check=True,
    )
