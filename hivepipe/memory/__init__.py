"""Memory files, searchable: by words, and by meaning where a provider is set.

chunks       a file's text -> chunks; pure
index        the index of a home, one SQLite file; it follows from the files
embeddings   texts -> vectors, by an endpoint in OpenAI's form
"""
