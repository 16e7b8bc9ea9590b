"""Anthropic's messages, as the process that asks speaks them."""

from typing import Any

import httpx2
from anthropic import AsyncAnthropic
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider


def anthropic_model(request: dict[str, Any], client: httpx2.AsyncClient) -> Model[Any]:
    """Return the model; its client does not try again by itself."""
    asking = AsyncAnthropic(
        api_key=request["secret"] or "none",  # the library wants one where a server does not
        base_url=request["url"],
        http_client=client,
        max_retries=0,
    )
    return AnthropicModel(request["model"], provider=AnthropicProvider(anthropic_client=asking))
