"""Full-text search of the archive, with an index that can be rebuilt at any time."""
