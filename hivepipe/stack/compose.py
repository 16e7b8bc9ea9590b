"""compose.yaml, rendered from the same table as supervisord's programs and the Procfile."""

from hivepipe.stack.processes import PROCESSES, Process, needed_with
from hivepipe.stack.redis_server import LIMITS

REDIS_URL = "redis://:${HIVEPIPE_REDIS_PASSWORD:?set it in .env}@redis:6379/0"

_EMPTY = "''"
_HEAD = """\
# Made from hivepipe/stack/compose.py: python -m hivepipe.stack.compose > compose.yaml
# The password: echo "HIVEPIPE_REDIS_PASSWORD=$(openssl rand -hex 24)" > .env; chmod 600 .env
name: hivepipe

x-process: &process
  image: hivepipe
  restart: unless-stopped
  init: true
  user: "10001:10001"
  read_only: true
  cap_drop: [ALL]
  security_opt: ["no-new-privileges:true"]
  tmpfs: [/tmp]
  volumes: ["home:/data", "sockets:/run/hivepipe"]
  environment: &environment
    HIVEPIPE_HOME: /data/home
    XDG_STATE_HOME: /data/state
    XDG_RUNTIME_DIR: /run/hivepipe
    REDIS_URL: {url}
  depends_on:
    redis: {{condition: service_healthy}}

services:
  redis:
    image: redis:7-alpine
    restart: unless-stopped
    user: "999:1000"
    read_only: true
    cap_drop: [ALL]
    security_opt: ["no-new-privileges:true"]
    tmpfs: [/tmp]
    volumes: ["redis:/data"]
    stop_grace_period: {redis_stop}s
    environment:
      REDISCLI_AUTH: ${{HIVEPIPE_REDIS_PASSWORD:?set it in .env}}
    # By its input: an argument would show the password to whoever lists processes.
    command:
      - sh
      - -c
      - |
        exec redis-server {options} - <<END
        requirepass $$REDISCLI_AUTH
        END
    healthcheck:
      test: ["CMD", "redis-cli", "ping"]
      interval: 5s
      timeout: 3s
      retries: 5
"""
_PROCESS = """\

  {name}:
    <<: *process
    {source}command: [python, -I, -m, hivepipe.stack.container, {name}]
    stop_grace_period: {stop_secs}s
    healthcheck:
      test: ["CMD", "python", "-I", "-m", "hivepipe.stack.container", "--check", "{name}"]
      interval: 15s
      timeout: 5s
      retries: 3
"""
_TAIL = """\

  # Reachable from this machine alone; the token is yours to choose.
  dashboard:
    <<: *process
    command: [hivepipe, dashboard, --bind, 0.0.0.0]
    depends_on:
      writer: {condition: service_healthy}  # it is the first to say where Redis is
    environment:
      <<: *environment
      HIVEPIPE_DASHBOARD_TOKEN: ${HIVEPIPE_DASHBOARD_TOKEN:?set it in .env}
    ports: ["127.0.0.1:9181:9181"]
    healthcheck:
      test:
        - CMD
        - python
        - -I
        - -c
        - import socket; socket.create_connection(("127.0.0.1", 9181), 3)
      interval: 15s
      timeout: 5s
      retries: 3

volumes:
  home:
  sockets:
  redis:
"""


def compose() -> str:
    """Return the text of compose.yaml: a Redis with a password, and a container per process."""
    redis = next(entry for entry in PROCESSES if entry.if_redis == "own")
    options = {"appendonly": "yes", "appendfsync": "everysec", "dir": "/data", **LIMITS}
    words = " ".join(f"--{name} {value or _EMPTY}" for name, value in options.items())
    head = _HEAD.format(url=REDIS_URL, redis_stop=redis.stop_secs, options=words)
    return head + "".join(map(_service, needed_with("rediss://elsewhere"))) + _TAIL


def _service(entry: Process) -> str:
    source = "build: .\n    " if entry.name == "writer" else ""
    return _PROCESS.format(source=source, **entry._asdict())


if __name__ == "__main__":
    print(compose(), end="")  # noqa: T201  it is what it is for
