"""Maintenance: backup, forgetting on request, and disk usage."""
