"""What agents get from hivepipe: the memory server, memory search and the briefing."""
