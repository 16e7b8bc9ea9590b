"""The page of a team for all members. The server decides which rows each member sees.

identity           authentication by the header of a trusted proxy
oidc               authentication by OpenID Connect
browser_sessions   signed-in browsers, in memory
app                the views, and access control
"""
