"""A team: many machines ship their rows to one PostgreSQL.

address      which servers a machine speaks to: TLS with verification, or a local one
connection   psycopg, imported only where a team is used
schema/      the server's tables, functions and roles, as migrations
membership   this machine's member, its secrets, what it shares
policy       nothing, metadata, prompts, everything: by project
shared_rows  which columns go at which level
batches      the changed rows of a home as the server takes them
shipment     one home's way to the server, exactly once
retention    how long rows are kept
"""
