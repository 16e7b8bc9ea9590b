"""What a message costs: tokens, a dated price table, exact arithmetic. Pure."""
