"""The model for Anthropic's messages API, used by `asker`."""

from typing import Any

import httpx2
from anthropic import AsyncAnthropic
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider


def anthropic_model(request: dict[str, Any], client: httpx2.AsyncClient) -> Model[Any]:
    """Return pydantic-ai's model for a request; its HTTP client does not retry by itself."""
    asking = AsyncAnthropic(
        # The library requires a key even if the server does not
        api_key=request["secret"] or "none",
        base_url=request["url"],
        http_client=client,
        max_retries=0,
    )
    return AnthropicModel(request["model"], provider=AnthropicProvider(anthropic_client=asking))
