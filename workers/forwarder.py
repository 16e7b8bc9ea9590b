"""The process that moves the spool into a remote Redis: `python -I workers/forwarder.py`.

Hooks do not connect to a Redis on another machine: they spool events and notify this process.
HIVEPIPE_HOME names the home. Exits 0 on SIGTERM, SIGINT and SIGHUP, 75 if the home has a forwarder
already.
"""

from hivepipe.worker.forwarder import Forwarder
from hivepipe.worker.own_process import serve_alone

if __name__ == "__main__":
    serve_alone(Forwarder)
