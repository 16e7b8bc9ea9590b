#!/bin/sh
# The installed command: starts the real one isolated, whatever PYTHONPATH or the folder hold.
IFS=: absolute=
set -f
for folder in $PATH; do # a relative entry names a folder of the current project
  case $folder in /*) absolute=$absolute:$folder ;; esac
done
set +f
unset IFS
PATH=${absolute:-:/usr/bin:/bin}
PATH=${PATH#:}
self=$0
[ -L "$self" ] && self=$(readlink -f "$self")
python=${self%/*}/python
if ! [ -x "$python" ]; then
  if [ -e "${self%/*}/../pyvenv.cfg" ]; then # a link to a Python that an upgrade has removed
    echo "hivepipe: $python is missing or cannot be executed: make its environment again, and install hivepipe there" >&2
    exit 1
  fi
  python=python3 # not in an environment of its own: a system's, a container's
fi
unset PYTHONEXECUTABLE __PYVENV_LAUNCHER__ # they would be heeded in spite of -I
exec "$python" -I -X utf8 -m hivepipe.cli.main "$@"
