"""The commands of `hivepipe`. Each parses its arguments, calls one function and prints."""
