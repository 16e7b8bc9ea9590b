"""The process that ships rows to a team's server: `python -I workers/uplink.py`.

It runs while a team is joined. HIVEPIPE_HOME names the home. Exits 0 on SIGTERM, SIGINT and SIGHUP,
75 if the home has an uplink already.
"""

from hivepipe.worker.own_process import serve_alone
from hivepipe.worker.uplink import Uplink

if __name__ == "__main__":
    serve_alone(Uplink)
