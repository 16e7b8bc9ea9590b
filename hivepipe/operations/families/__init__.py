"""The operations, one file per family: arguments, priority, queue, schedule and handler of each.

Every module here is imported when a process starts, so it imports little. A handler that needs more
imports is in a module outside this package.
"""
