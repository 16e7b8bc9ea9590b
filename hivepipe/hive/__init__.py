"""The `.hive/` protocol: one Claude gives work to others, through files."""
