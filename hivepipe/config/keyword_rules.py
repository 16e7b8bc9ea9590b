"""Validation of `[[context]]` rules: texts that are added to prompts with certain words."""

from typing import Any

CONTEXT = "context"
MOST_CONTEXT_CHARS = 9_500


def keyword_rules(path: str, rules: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the valid rules of a file, and messages about the invalid rules."""
    if not isinstance(rules, list):
        return [], [f"{path}: {CONTEXT} must be written [[{CONTEXT}]]"]
    usable, problems = [], []
    for number, rule in enumerate(rules, 1):
        fields: Any = rule if isinstance(rule, dict) else {}
        keywords, text = fields.get("keywords"), fields.get("text")
        fits = (
            set(fields) == {"keywords", "text"}
            and isinstance(keywords, list)
            and all(isinstance(word, str) and word.strip() for word in keywords)
            and isinstance(text, str)
            and 0 < len(text) <= MOST_CONTEXT_CHARS
        )
        if fits and keywords:
            lower = [" ".join(word.lower().split()) for word in keywords]
            usable.append({"keywords": lower, "text": text.strip()})
        else:
            problems.append(
                f"{path}: [[{CONTEXT}]] number {number} must have keywords, a list of words, "
                f"and a text of at most {MOST_CONTEXT_CHARS:,} characters"
            )
    return usable, problems
