"""Configuration: the file, its settings, trust in a project's file, and requests to a person."""
