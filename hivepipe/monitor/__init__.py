"""Monitoring: the snapshot of a home, its status report and its metrics."""
