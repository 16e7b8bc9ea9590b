"""`hivepipe migrate`: move the predecessor's files away, import its rows, remove its hooks."""
