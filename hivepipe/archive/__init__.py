"""The archive: a redacted copy of every transcript, extended as the transcript grows.

<name>.jsonl        the lines; `.jsonl.gz` a month after the last line was added
<name>.meta.json    metadata and checkpoint of the lines; written after them, atomically
.<name>.learned     secrets that were found in the lines, as keyed hashes
.<name>.tally       totals of the lines, saved from time to time
archive-index.json  session and subagent -> the path of its archive
"""
