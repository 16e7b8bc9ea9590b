"""Putting hivepipe into Claude Code's settings, and taking it out again."""
