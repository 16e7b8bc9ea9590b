"""One function per operation: unpack, call one or two rooms, return."""
