"""A bind address that cannot be used is reported, and nothing is served."""

import pytest
from click.testing import CliRunner

from hivepipe.cli.main import main


@pytest.mark.parametrize("bind", ["", "two words", "\x1b[2J", "naïve.example", "a\nb"])
@pytest.mark.parametrize("command", ["web", "dashboard"])
def test_an_address_with_other_characters_is_a_usage_error(command: str, bind: str) -> None:
    done = CliRunner().invoke(main, [command, "--port", "0", "--bind", bind])
    assert done.exit_code == 64
    assert "is not an address or a host name" in done.output


@pytest.mark.parametrize("command", ["web", "dashboard"])
def test_an_address_of_no_interface_is_reported(command: str) -> None:
    done = CliRunner().invoke(main, [command, "--port", "0", "--bind", "198.51.100.7"])
    assert done.exit_code == 1
    assert "cannot listen on 198.51.100.7:0" in done.output
