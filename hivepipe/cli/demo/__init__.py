"""Command `demo`: a day of work through the real hooks and the real stack, held against a list."""
