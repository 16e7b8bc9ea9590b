"""What may be wrong with an installation, and the command that mends it."""
