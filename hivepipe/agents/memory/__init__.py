"""Search of memory files: full text, and by embeddings if a provider is set.

chunks       splitting a file's text into chunks
index        the index of a home, one SQLite file, derived from the files
embeddings   vectors of texts, from an endpoint with OpenAI's API
"""
