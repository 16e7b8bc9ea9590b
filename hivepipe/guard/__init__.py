"""The guard: stops an agent whose task is cancelled, that loops, or that polls without end."""
