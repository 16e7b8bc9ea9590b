"""Texts that the user wants added to the context when a prompt contains certain words.

    [[context]]                     in config.toml, compiled into hook-settings.json
    keywords = ["deploy"]
    text = "..."

Hooks import this module at UserPromptSubmit if there are such rules.
"""

MOST_CHARS = 9_500


def keyword_texts(rules: object, prompt: str) -> str:
    """Return the texts of rules with a keyword in the prompt, at most 9,500 characters."""
    flat = " ".join(prompt.lower().split())
    texts: list[str] = []
    for rule in rules if isinstance(rules, list) else ():
        keywords, text = rule.get("keywords"), rule.get("text")
        if text not in texts and any([has_word(flat, keyword) for keyword in keywords]):
            texts.append(text)
    return "\n\n".join(texts)[:MOST_CHARS]


def has_word(text: str, word: str) -> bool:
    """Tell whether the text contains this word or phrase at word boundaries."""
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        begins = not (at and text[at - 1].isalnum() and word[0].isalnum())
        ends = not (text[end : end + 1].isalnum() and word[-1].isalnum())
        if begins and ends:
            return True
        at = text.find(word, at + 1)
    return False
