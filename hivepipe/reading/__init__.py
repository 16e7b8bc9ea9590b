"""Queries for commands and pages: typed functions with bounded results."""
