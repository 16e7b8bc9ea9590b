"""The process that ships rows to a team's server: `python -I workers/uplink.py`.

The uplink runs while a team is joined. HIVEPIPE_HOME names the home. The exit code is 0 after
SIGTERM, SIGINT or SIGHUP, and 75 if the home already has an uplink.
"""

from hivepipe.worker.own_process import serve_alone
from hivepipe.worker.uplink import Uplink

if __name__ == "__main__":
    serve_alone(Uplink)
