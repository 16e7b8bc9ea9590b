"""From Claude Code's stdin to jobs handed over: session, instance, throttle, hand-over."""
