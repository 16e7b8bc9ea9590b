"""The server of `hivepipe mcp`: five tools over the reading room, by the Model Context Protocol."""
