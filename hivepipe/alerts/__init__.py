"""Alerts: the rules, and the notification of people."""
