"""Objects of archives that cannot be deleted now are named with the reason."""

import pytest

from hivepipe.errors import TeamError
from hivepipe.team.archives import leftovers


def test_a_store_that_is_away_is_named_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_connection: object) -> dict[str, int]:
        raise TeamError("the store at s3.example does not answer")

    monkeypatch.setattr(leftovers, "delete_now", fail)
    monkeypatch.setattr(leftovers, "_waiting", lambda _connection: {leftovers.WAITING: 3})
    assert leftovers.delete_now_or_later(None) == {leftovers.WAITING: 3}  # type: ignore[arg-type]
    assert "the store at s3.example does not answer" in caplog.text
