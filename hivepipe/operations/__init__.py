"""Handlers: one function per operation. It calls other packages with the job's arguments."""
