"""Queries of a team's server, with results in the same form as on one machine.

source         a read-only connection, its member, and audit entries of reads
sessions, agents, costs, skills, search    lists over all members and machines
conversation   the archive of a session
session        one session as an in-memory store
"""
