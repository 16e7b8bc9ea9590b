"""Services for agents: the memory server, memory search and the briefing."""
