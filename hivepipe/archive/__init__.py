"""The archive: a redacted copy of every transcript, extended as the transcript grows.

<name>.jsonl        the lines; `.jsonl.gz` a month after the last line was added
.<name>.reach       the commit record (`Offsets`), written after the lines
<name>.meta.json    metadata, written after the commit record
.<name>.learned     secrets that were found in the lines, as keyed hashes
.<name>.surplus     hashes of archived lines that the transcript no longer has
.<name>.tally       totals of the lines, saved from time to time
archive-index.json  session and subagent -> the path of its archive
"""
