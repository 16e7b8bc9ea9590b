"""Ownership of files: the manifest of hivepipe's files, and the handling of all others.

A file that is not in the manifest, or was changed since hivepipe wrote it, belongs to a person. It
is read and reported; it is never deleted, compressed, replaced or changed.
"""
