"""`hivepipe migrate`: moves the predecessor's files away, imports its rows, removes its hooks."""
