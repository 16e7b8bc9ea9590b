"""`hivepipe migrate`: the predecessor's files go aside, its rows come in, its hooks go out."""
