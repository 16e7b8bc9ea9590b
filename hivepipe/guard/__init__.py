"""What stops an agent: a cancelled task, a loop, a poll without end."""
