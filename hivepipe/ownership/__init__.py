"""Which files hivepipe made: the manifest, and what may be done with any other file.

A file that is not in the manifest, or is not what hivepipe wrote last, belongs to a person. It is
read and named; it is never deleted, compressed, replaced or changed.
"""
