"""The process that moves the spool into a remote Redis: `python -I workers/forwarder.py`.

Hooks do not connect to a Redis on another machine: they spool events and notify this process.
HIVEPIPE_HOME names the home. The exit code is 0 after SIGTERM, SIGINT or SIGHUP, and 75 if the home
already has a forwarder.
"""

from hivepipe.worker.forwarder import Forwarder
from hivepipe.worker.own_process import serve_alone

if __name__ == "__main__":
    serve_alone(Forwarder)
