"""Archives of a team: compressed ranges of lines, immutable, named by the hash of their bytes.

place      where the bytes are kept: nowhere, in PostgreSQL, in an S3 bucket
cipher     encryption on the machine
cutting    splitting an archive into segments
stores     writing, reading and deleting the bytes in S3
sending    one home's archives
reading    a session's lines
leftovers  deleting objects that are no longer listed
"""
