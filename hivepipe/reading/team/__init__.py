"""What a team's server has, in the forms that the views of one machine have.

source    a connection that only reads; whom it is read for; notes of reads
sessions, agents, costs, skills, search    lists over persons and machines
conversation   a session's archive, read like one of this machine
session   one session as a store in memory, which is read like one of this machine
"""
