"""The texts that a session gets as context at its start. Pure functions."""
