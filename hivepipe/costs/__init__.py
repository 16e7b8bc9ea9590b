"""Compute the cost of messages: tokens, a dated price table, exact arithmetic. No I/O."""
