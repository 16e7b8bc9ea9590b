"""The process that takes events from native hooks: `python -I -S workers/intake.py`.

HIVEPIPE_HOME names the home. The exit code is 0 after SIGTERM, SIGINT or SIGHUP, and 75 if the home
already has an intake.
"""

import sys

# `site` is not imported, because its modules would take a third of the process's memory.
sys.path.append(__file__.rsplit("/", 3 if "/_workers/" in __file__ else 2)[0])

from hivepipe.hook.intake_server import main

if __name__ == "__main__":
    main()
