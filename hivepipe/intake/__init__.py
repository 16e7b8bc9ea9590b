"""The hook path, from Claude Code's stdin to enqueued jobs: session, instance, throttle, hand-over."""
