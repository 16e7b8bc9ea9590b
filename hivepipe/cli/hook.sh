#!/bin/sh
# `hivepipe-hook EVENT`: the hook of that event, for settings files that git shares between
# machines, which can name no path, and for the plugin (`hivepipe-hook EVENT plugin`). The user's own
# copy of the hooks comes first, then this installation. Without either it does nothing,
# successfully.
IFS=: absolute=
set -f
for folder in $PATH; do # a relative entry names a folder of the current project
  case $folder in /*) absolute=$absolute:$folder ;; esac
done
set +f
unset IFS
PATH=${absolute:-:/usr/bin:/bin}
PATH=${PATH#:}
unset PYTHONEXECUTABLE __PYVENV_LAUNCHER__ # they would be heeded in spite of -I
state=${XDG_STATE_HOME:-$HOME/.local/state}
copy=/${state#/}/hivepipe/hooks/default/hook # never a path below the current folder
[ -x "$copy" ] && exec "$copy" "$@"

self=$0
[ -L "$self" ] && self=$(readlink -f "$self")
bin=${self%/*}
python=$bin/python
[ -x "$python" ] || python=$(command -v python3) || exit 0 # a system's: no environment of its own

run() { # the hooks' folder, the folder of the package, the arguments
  [ -f "$1/$3.py" ] && [ -f "$2/hivepipe/hook/run.py" ] || return
  hook=$1/$3.py
  shift 3
  exec "$python" -I -S -X utf8 "$hook" "$@"
}

for packages in "${bin%/*}"/lib/python3*/site-packages "${bin%/*}"/lib/python3*/dist-packages; do
  run "$packages/hivepipe/_hooks" "$packages" "$@"
  for pth in "$packages"/*hivepipe*.pth; do # an editable installation: a line with its folder
    [ -f "$pth" ] && read -r clone <"$pth"
    [ -n "$clone" ] && run "$clone/hooks" "$clone" "$@"
  done
done
exit 0
