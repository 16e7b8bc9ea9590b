"""What the commands and pages read: typed functions whose results are bounded."""
