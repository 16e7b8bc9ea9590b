"""Access to Redis, and the spool that holds events while Redis cannot be reached."""
