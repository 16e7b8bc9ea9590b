"""The page of a team for all members: each sees what the server lets that member see.

identity           authentication by the header of a trusted proxy
oidc               authentication by OpenID Connect
browser_sessions   signed-in browsers, in memory
app                the views, and access control
"""
