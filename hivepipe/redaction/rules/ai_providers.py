"""Tokens of AI providers."""

from hivepipe.redaction.rule import BASE64, PADDING, START, WORDS, token

AI_PROVIDERS = (
    token(
        "sk_vendor",
        r"sk-(?:ant|proj|or-v1|svcacct|admin)-[A-Za-z0-9_-]{16,}",
        "x«sk-ant-api03-<w93>AA»",
        sieve="sk-(?:ant|proj|or-v1|svcacct|admin)-",
        unless=WORDS,
    ),
    # Anthropic, OpenAI, OpenRouter, DeepSeek, LiteLLM ... and Stripe's older secret keys
    token(
        "sk",
        r"sk-[A-Za-z0-9_-]{16,}|sk_[A-Za-z0-9]{24,}",
        "key=«sk-ant-api03-<w93>AA»",
        "«sk-proj-<w74>T3BlbkFJ<w74>»",
        "«sk-<A48>»",
        "«sk-or-v1-<h64>»",
        "«sk_<h48>»",
        sieve=START + "sk[-_]",
        unless=WORDS,
        but="sk-learn-tutorial-notebook-2",
    ),
    token(
        "huggingface",
        r"(?:hf|api_org)_[A-Za-z0-9]{30,}",
        "«hf_<A34>»",
        "«api_org_<A34>»",
        sieve="hf_|api_org_",
    ),
    token("replicate", r"r8_[A-Za-z0-9]{37,}", "«r8_<A37>»"),
    token("groq", r"gsk_[A-Za-z0-9]{40,}", "«gsk_<A52>»"),
    token("perplexity", r"pplx-[A-Za-z0-9]{40,}", "«pplx-<A48>»"),
    token("xai", r"xai-[A-Za-z0-9_-]{60,}", "«xai-<A80>»"),
    token(
        "langsmith",
        r"ls(?:v2_[a-z]{2}|__)_[A-Za-z0-9_]{32,}",
        "«lsv2_pt_<h32>_<h10>»",
        sieve="lsv2_|ls__",
    ),
    token("tavily", r"tvly-[A-Za-z0-9-]{28,}", "«tvly-dev-<A32>»"),
    token("nvidia", r"nvapi-[A-Za-z0-9_-]{60,}", "«nvapi-<w64>»"),
    token("jina", r"jina_[A-Za-z0-9_-]{50,}", "«jina_<A60>»"),
    token(
        "voyage",
        r"(?:pa|al)-[A-Za-z0-9_-]{43}\b",
        "«pa-<w42>a»",
        sieve=START + "(?:pa|al)-[A-Za-z0-9_-]{40}",
        unless=WORDS,
    ),
    token("pinecone", r"pcsk_[A-Za-z0-9_]{50,}", "«pcsk_<A70>»"),
    token("cerebras", r"csk-[a-z0-9]{48}", "«csk-<l48>»"),
    token("together", r"tgp_v1_[A-Za-z0-9_-]{43}", "«tgp_v1_<w43>»"),
    token("gemini", r"AQ\.Ab8RN6[A-Za-z0-9_-]{40,}", "«AQ.Ab8RN6<w44>»"),
    token("wandb", r"wandb_v1_[A-Za-z0-9_]{70,}", "«wandb_v1_<A77>»"),
    token("llamacloud", r"llx-[A-Za-z0-9]{44,}", "«llx-<A48>»"),
    token(
        "devin",
        rf"apk_(?:user_)?{BASE64}{{80,}}{PADDING}|cog_[a-z2-7]{{52}}",
        "«apk_user_<b140>»",
        "«cog_<a52>»",
        sieve="apk_|cog_[a-z2-7]",
    ),
    token("runpod", r"rpa_[A-Z0-9]{40}[A-Za-z0-9]{6}|rpa_[A-Za-z0-9]{30}\b", "«rpa_<u46>»"),
    token(
        "zhipu",
        r"[0-9a-f]{32}\.[A-Za-z0-9]{16}\b",
        "«<h32>.<A16>»",
        sieve=r"[0-9a-f]{32}\.[A-Za-z0-9]",
        unless=r"[0-9a-f]{32}\.(?:[a-z]+|[A-Z]+|[0-9a-f]+)",
    ),
)
