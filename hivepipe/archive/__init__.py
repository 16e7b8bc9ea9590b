"""The archive: every transcript once, redacted, growing with its source.

<name>.jsonl        the lines; `.jsonl.gz` a month after the last one came
<name>.meta.json    what they say, and how far they reach: replaced in one step, after them
.<name>.learned     what was found in it once, as keyed hashes
.<name>.tally       what they add up to, laid aside now and then
archive-index.json  where the archive of each session and subagent is
"""
