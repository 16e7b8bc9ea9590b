"""The operations, one file per family: arguments, priority, queue, schedule and handler of each.

Every file here is imported when a process starts, so it imports little. A handler that needs more
stands in a module of its own, beside this package.
"""
