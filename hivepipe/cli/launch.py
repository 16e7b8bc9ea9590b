#!python
"""The installed command: starts the real one isolated, whatever PYTHONPATH or the folder hold."""

import os
import sys

os.execv(sys.executable, [sys.executable, "-I", "-m", "hivepipe.cli.main", *sys.argv[1:]])
