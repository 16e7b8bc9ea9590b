"""What `up` says of a supervisor that ended at once."""

import subprocess
from tempfile import TemporaryFile

import pytest

from hivepipe.stack.supervisor import _last_words


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("kill -KILL $$", "it was killed, as the kernel does when memory is short"),
        ("echo 'Error: no room' >&2; exit 2", "no room"),
        ("exit 1", "see `hivepipe logs supervisord`"),
    ],
)
def test_up_says_how_a_supervisor_ended(script: str, words: str) -> None:
    with TemporaryFile() as errors:
        process = subprocess.Popen(["sh", "-c", script], stderr=errors)
        process.wait(10)
        assert _last_words(process, errors) == words
