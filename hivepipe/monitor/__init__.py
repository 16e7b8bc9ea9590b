"""Monitoring: the snapshot of a home, its status report and the dashboard."""
