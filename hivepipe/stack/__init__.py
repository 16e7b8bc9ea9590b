"""The processes of a home: Redis server, writer, and the supervisor over them."""
