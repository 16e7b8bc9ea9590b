"""The predecessor: what it left in a project, and whether it still runs. Read only."""
