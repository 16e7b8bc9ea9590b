"""Install hivepipe's hooks into Claude Code's settings, and remove them."""
