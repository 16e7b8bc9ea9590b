"""The `.hive/` protocol: an orchestrating Claude delegates tasks to workers through files."""
