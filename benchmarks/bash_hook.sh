#!/bin/bash
# The hook of a file queue in bash, jq and sqlite3, written for speed, for comparison.
#
#     bash_hook.sh FOLDER < event
#
# FOLDER has hive.db, pending/ and .tmp/. One jq reads the event, one sqlite3 reads the session's
# swarm, and one jq writes each job. A lock protects the sequence. A rename publishes the job.
set -u
folder=$1
IFS=$'\t' read -r session tool agent description file < <(
  jq -r '[.session_id, .tool_name // "", .agent_id // "", .tool_input.description // "",
          .tool_input.file_path // .prompt // ""] | @tsv'
)
swarm=$(sqlite3 "$folder/hive.db" "SELECT swarm_id FROM sessions WHERE id = '${session//\'/\'\'}'")

enqueue() { # priority operation
  local number name
  exec 9> "$folder/.lock"
  flock 9
  number=$(($(cat "$folder/.seq" 2> /dev/null || echo 0) + 1))
  echo "$number" > "$folder/.seq"
  exec 9>&-
  printf -v name '%s_%s_%s.json' "$1" "$EPOCHREALTIME" "$number"
  jq -n --arg op "$2" --arg session "$session" --arg swarm "${swarm:-}" --arg tool "$tool" \
    --arg agent "$agent" --arg description "$description" --arg file "$file" \
    '{op: $op, session: $session, swarm: $swarm, tool: $tool, agent: $agent,
      description: $description, file: $file, retries: 0}' > "$folder/.tmp/$name"
  mv "$folder/.tmp/$name" "$folder/pending/$name"
}

case $tool in
  Write | Edit | MultiEdit | NotebookEdit | Agent | Task)
    enqueue 3 update_checkpoint
    enqueue 5 insert_agent
    enqueue 7 insert_log
    ;;
  *) enqueue 5 insert_prompt ;;
esac
exit 0
