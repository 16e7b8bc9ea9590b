"""The tools. Each module has a function `answer`, which takes a parsed call. No SQL here."""
