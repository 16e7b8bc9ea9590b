"""Queries of commands and pages: typed functions with bounded results."""
