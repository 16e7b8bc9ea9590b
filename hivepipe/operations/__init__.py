"""Handlers, one function per operation, which call other packages with the job's arguments."""
