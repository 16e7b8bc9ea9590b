"""The page of `hivepipe web`: views over the reading room, their JSON twins, live by events."""
