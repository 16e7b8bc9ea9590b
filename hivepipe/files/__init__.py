"""Files: folders, logs, and the ownership of files.

A file that is not in the manifest, or was changed since hivepipe wrote it, belongs to a person. It
is read and reported; it is never deleted, compressed, replaced or changed.
"""
