"""Files: folders, logs, and the ownership of files.

A file that is not in the manifest, or was changed since hivepipe wrote it, belongs to a person.
hivepipe reads and reports such a file, but never deletes, compresses, replaces or changes it.
"""
