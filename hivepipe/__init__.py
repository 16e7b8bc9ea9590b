"""hivepipe: the background pipeline behind Claude Code hooks."""
