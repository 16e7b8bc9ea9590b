"""Summaries by language models: excerpt, question, provider and answer."""
