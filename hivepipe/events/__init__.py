"""Events: what each host sends, and the jobs that each event becomes."""
