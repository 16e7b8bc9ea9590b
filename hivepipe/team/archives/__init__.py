"""Archives of a team: compressed ranges of lines, immutable, named by the hash of their bytes.

place      where the bytes lie: nowhere, in the database, in a bucket of S3
cipher     encryption on the machine
cutting    archive -> segments
stores     writing, reading and deleting the bytes
sending    one home's archives
reading    a session's lines
leftovers  deleting what the list does not have any more
"""
