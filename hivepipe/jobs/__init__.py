"""Jobs: envelope, retries, the schedule and the log of a running job."""
