"""The tools: each module has a function `answer`, which takes a parsed call. No SQL here."""
