# Runs a hook of the plugin. Sourced by hooks.json, with the hook's name in $hook and the
# path of this file in $plugin. The installed hivepipe comes first, so that hooks and stack have the
# same version: first the user's copy of its hooks, which an upgrade of the package does not change,
# then the package. Without the package, the plugin's own hooks store the events on disk. Without
# Python nothing happens, so that no tool call shows an error.
IFS=: absolute=
set -f
for folder in $PATH; do # a relative entry names a folder of the current project
  case $folder in /*) absolute=$absolute:$folder ;; esac
done
set +f
unset IFS
PATH=${absolute:-:/usr/bin:/bin}
PATH=${PATH#:}
unset PYTHONEXECUTABLE __PYVENV_LAUNCHER__ # Python obeys them even with -I
state=${XDG_STATE_HOME:-$HOME/.local/state}
copy=/${state#/}/hivepipe/hooks/default/hook # never a path below the current folder

own() { # run the plugin's own hook
  script=${plugin%/*}/$hook.py
  [ -f "$script" ] || exit 0

  IFS=:
  for python in python3.14 python3.13 python3.12 python3.11 python3; do
    for folder in $PATH; do
      case $folder/$python in
        */shims/python3) ;;  # of pyenv: slow, the last resort
        */shims/*) continue ;;  # these exist for versions that are not installed, too
        # On a Mac without the developer tools this program opens a window.
        /usr/bin/python3)
          tools=/usr/bin/xcode-select
          [ -x $tools ] && ! $tools -p >/dev/null 2>&1 && continue
          ;;
      esac
      [ -x "$folder/$python" ] && exec "$folder/$python" -I -S -X utf8 "$script" plugin copy
    done
  done
  exit 0
}

# `exec` fails if the Python of the program was removed. Then any shell ends, except bash with execfail.
trap own EXIT
[ "$BASH_VERSION" ] && shopt -s execfail
[ -x "$copy" ] && exec "$copy" "$hook" plugin
command -v hivepipe-hook >/dev/null && exec hivepipe-hook "$hook" plugin
own
