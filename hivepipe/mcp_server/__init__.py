"""The server of `hivepipe mcp`: five query tools over the Model Context Protocol."""
