"""A team: many machines send their rows to one PostgreSQL server.

address      the URL of the server: TLS with verification, or a local server
connection   psycopg, imported only where a team is used
schema/      the server's tables, functions and roles, as migrations
membership   this machine's member, its secrets and what it shares
policy       the level of sharing by project: nothing, metadata, prompts or everything
shared_rows  which columns are sent at which level
batches      the changed rows of a home in the format of the server
shipment     sending the rows of one home, exactly once
retention    how long rows are kept
"""
