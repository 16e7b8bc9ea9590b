"""What Claude Code's transcripts say: lines in, metadata and usage out. Pure."""
