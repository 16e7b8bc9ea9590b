"""Text for users: safe display, quoting, plurals and URLs."""
