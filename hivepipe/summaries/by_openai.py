"""Models for OpenAI's protocols: OpenAI, OpenRouter, Codex and local servers."""

from typing import Any

import httpx2
from openai import AsyncOpenAI
from pydantic_ai.models import Model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.openai_codex import OpenAICodexModel
from pydantic_ai.models.openrouter import OpenRouterModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_codex import OpenAICodexProvider
from pydantic_ai.providers.openrouter import OpenRouterProvider


def openai_model(request: dict[str, Any], client: httpx2.AsyncClient) -> Model[Any]:
    """Return pydantic-ai's model for a request; its HTTP client does not retry by itself."""
    account = {"chatgpt-account-id": request["account"]} if request["account"] else {}
    asking = AsyncOpenAI(
        # The library requires a key even if the server does not
        api_key=request["secret"] or "none",
        base_url=request["url"],
        http_client=client,
        max_retries=0,
        default_headers={**account, "X-Title": "hivepipe"},
    )
    name = request["model"]
    if request["kind"] == "codex":
        return OpenAICodexModel(name, provider=OpenAICodexProvider(openai_client=asking))
    if request["kind"] == "openrouter":
        return OpenRouterModel(name, provider=OpenRouterProvider(openai_client=asking))
    return OpenAIChatModel(name, provider=OpenAIProvider(openai_client=asking))
