"""The page of a team for many persons: each sees what the server lets that member see.

identity   who asks: by the header of a trusted proxy
oidc       who asks: by OpenID Connect
visits     signed-in browsers, in memory
app        the views, and the one way in
"""
