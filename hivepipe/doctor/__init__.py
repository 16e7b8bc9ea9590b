"""Checks for problems of an installation, with the commands that solve them."""
