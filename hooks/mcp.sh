# The plugin's MCP server: the installed `hivepipe mcp`. Without the package, or if it is too old to
# know the command, a server without tools runs, so that nobody sees a failed server.
IFS=: absolute=
set -f
for folder in $PATH; do # a relative entry names a folder of the current project
  case $folder in /*) absolute=$absolute:$folder ;; esac
done
set +f
unset IFS
PATH=${absolute:-:/usr/bin:/bin}:$HOME/.local/venvs/hivepipe/bin # where the plugin says to install it
PATH=${PATH#:}
if command -v hivepipe >/dev/null; then
  hivepipe mcp
  code=$?
  case $code in # nothing was read yet
    64) ;; # wrong usage
    126 | 127) ;; # its Python was removed
    *) exit $code ;;
  esac
fi

about='"capabilities":{},"serverInfo":{"name":"hivepipe","version":"0"}'
while IFS= read -r line; do
  case $line in *'"id":'*) ;; *) continue ;; esac
  id=${line##*'"id":'}
  id=${id%%[,\}]*}
  case $id in '' | *[!0-9A-Za-z\"_-]*) continue ;; esac
  case $line in
    *'"method":"initialize"'*) body="\"result\":{\"protocolVersion\":\"2025-06-18\",$about}" ;;
    *'"method":"ping"'*) body='"result":{}' ;;
    *) body='"error":{"code":-32601,"message":"the package hivepipe is not installed"}' ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$body"
done
