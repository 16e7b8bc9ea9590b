"""Statistics of skill uses, and their exports for other programs. No I/O."""
