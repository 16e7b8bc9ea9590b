"""What a session is told when it starts: its parts, in words. Pure."""
