"""Command `demo`: a day of work through real hooks and a real stack, compared with fixed rows."""
