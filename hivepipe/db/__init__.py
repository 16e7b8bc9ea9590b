"""The SQLite database. Only this package contains SQL of the store."""
