"""Monitoring: the figures of a home, its status report and its metrics."""
