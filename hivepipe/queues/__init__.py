"""Everything that speaks to Redis, and the spool that stands in for it."""
