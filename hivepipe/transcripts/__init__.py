"""Parse the lines of Claude Code's transcripts into metadata and usage, without I/O."""
