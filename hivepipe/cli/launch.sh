#!/bin/sh
# The installed command: starts the real one isolated, whatever PYTHONPATH or the folder hold.
self=$0
[ -L "$self" ] && self=$(readlink -f "$self")
python=${self%/*}/python
[ -x "$python" ] || python=python3  # not in an environment of its own: a system's, a container's
exec "$python" -I -m hivepipe.cli.main "$@"
