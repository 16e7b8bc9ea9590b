"""Summaries by language models: excerpt, question, provider, answer."""
