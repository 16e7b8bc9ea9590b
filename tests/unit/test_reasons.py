"""The reason of a failed call: which texts of a provider's answer it shows."""

from typing import Any

import pytest

BODIES: list[tuple[Any, str]] = [
    (None, ""),
    (7, ""),
    ("no\n such  <b>model</b>", "no such model"),
    ({"error": {"message": "no such model", "type": "not_found"}}, "no such model"),
    ({"message": "no such model", "code": "x"}, "no such model"),
    ({"error": "no such model", "code": "x"}, "no such model"),
    ({"error": None, "detail": "no such model"}, "no such model"),
    ({"error": {"code": "x", "type": "y"}}, "x y"),
    ([{"error": {"message": "no such model"}}, "again"], "no such model again"),
    ({"error": {"message": "failed", "metadata": {"raw": "too long"}}}, "failed too long"),
    ({"error": {"message": "failed", "metadata": {"raw": {"why": ["too", 4]}}}}, "failed too"),
    ({"error": {"metadata": {"raw": "too long", "name": "x"}}}, "too long"),
    ({"error": {"message": "failed", "metadata": "m"}}, "failed"),
]


@pytest.mark.parametrize(("body", "words"), BODIES)
def test_a_reason_has_the_message_of_the_provider(body: Any, words: str) -> None:
    # Here, because their imports would take each process of the tests a second at collection.
    from pydantic_ai.exceptions import ModelHTTPError  # noqa: PLC0415

    from hivepipe.summaries.reasons import sentence  # noqa: PLC0415

    error = ModelHTTPError(404, "model", body)
    shown = f"HTTP 404: {words}" if words else "HTTP 404"
    assert sentence("refused", [error]) == f"the provider refused the request: {shown}"
