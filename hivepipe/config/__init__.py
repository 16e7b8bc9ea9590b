"""Configuration: the file, its settings, and files of a repository that need the user's trust."""
