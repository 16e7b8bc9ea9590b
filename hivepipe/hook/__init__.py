"""The hook path, from Claude Code's stdin to enqueued jobs."""
