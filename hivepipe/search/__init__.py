"""Full text over the archive: an index that can be thrown away and made again."""
