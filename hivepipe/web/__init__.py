"""The page of `hivepipe web`: views as HTML and JSON, updated live by server-sent events."""
