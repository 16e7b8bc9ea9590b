"""The processes of a home: Redis server, workers, and the supervisor that runs them."""
