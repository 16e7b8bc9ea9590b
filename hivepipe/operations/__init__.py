"""Handlers: one function per operation. A handler passes the job's arguments to other packages."""
