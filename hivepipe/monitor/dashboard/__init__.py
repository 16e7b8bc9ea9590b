"""The stack in a browser and for Prometheus: on demand, on the loopback, with a token."""
