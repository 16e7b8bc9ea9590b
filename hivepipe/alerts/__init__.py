"""Alerts: the rules, and the notification of users."""
