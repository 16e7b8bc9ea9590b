"""What the uses of skills add up to, and how other programs read it. Pure."""
