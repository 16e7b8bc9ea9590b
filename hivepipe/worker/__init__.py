"""The processes that take jobs: writer, forwarder, slow workers and scheduler."""
