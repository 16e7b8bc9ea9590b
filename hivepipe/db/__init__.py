"""The SQLite database. SQL is written in this room only."""
