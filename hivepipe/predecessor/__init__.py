"""Detection of the predecessor in a project: files, hooks, processes. Read only."""
