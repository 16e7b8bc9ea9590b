#!/bin/sh
# `hivepipe-hook NAME`: the hook of that name, for settings files that git shares between machines,
# which can name no path, and for the plugin (`hivepipe-hook NAME plugin`). Without its installation
# it does nothing, successfully.
self=$0
[ -L "$self" ] && self=$(readlink -f "$self")
bin=${self%/*}
# As a wheel installs it; as it lies in a clone with its `.venv`.
for hook in "$bin"/../lib/python3*/site-packages/hivepipe/_hooks/"$1".py "${bin%/*/*}/hooks/$1.py"; do
  [ -f "$hook" ] && [ -x "$bin/python" ] && exec "$bin/python" -I -S "$hook" "$2"
done
exit 0
