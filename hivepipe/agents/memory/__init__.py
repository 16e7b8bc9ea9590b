"""Search of memory files: by words, and by meaning if a provider is set.

chunks       split a file's text into chunks; pure
index        the index of a home, one SQLite file, derived from the files
embeddings   texts -> vectors, from an endpoint with OpenAI's API
"""
