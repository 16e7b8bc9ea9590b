"""The SQLite state: the only place with SQL."""
