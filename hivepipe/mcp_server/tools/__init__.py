"""The tools: each module has `answer`, which reads what a call asks for. No SQL here."""
