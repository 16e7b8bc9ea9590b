#!/bin/sh
# The installed command: starts the real one isolated, whatever PYTHONPATH or the folder hold.
self=$0
[ -L "$self" ] && self=$(readlink -f "$self")
python=${self%/*}/python
[ -x "$python" ] || python=python3  # not in an environment of its own: a system's, a container's
unset PYTHONEXECUTABLE __PYVENV_LAUNCHER__ # they would be heeded in spite of -I
exec "$python" -I -m hivepipe.cli.main "$@"
