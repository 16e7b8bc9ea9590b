"""Parse Claude Code's transcripts: lines in, metadata and usage out. No I/O."""
