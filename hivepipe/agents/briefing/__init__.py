"""Texts of the context that a session gets at its start. Pure."""
