"""Handlers, one function per operation: unpack the job, call one or two rooms, return."""
