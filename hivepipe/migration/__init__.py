"""`hivepipe migrate`: set the predecessor's files aside, import its rows, remove its hooks."""
