"""Text for people: safe display, quoting, plurals and URLs."""
