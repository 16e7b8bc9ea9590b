"""The commands of `hivepipe hive`."""
