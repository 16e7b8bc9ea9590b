"""Checks for problems of an installation, each with the command that solves it."""
