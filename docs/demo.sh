#!/bin/sh
# What `make demo` shows: the database is built, then real job files are checked. Rejections are part of the demo.
set -eu
cd "$(dirname "$0")/.."
BIN=${BIN:-.venv/bin}
run() {
  printf '\n$ ascend-compat %s\n' "$*"
  "$BIN/ascend-compat" "$@" && code=0 || code=$?
  printf '(exit code %s)\n' "$code"
  [ "$code" -le 1 ] || exit "$code"
}
run matrix build
run sql "SELECT status, count(*) AS cells FROM cell WHERE release = '6.5.906' GROUP BY 1 ORDER BY 1"
run check docs/examples/af-llamafactory-lora-qwen2.5-7b.yaml
run check docs/examples/af-llamafactory-lora-qwen2-1.5b.yaml
run check docs/examples/mindspeed-llm-qwen2.5-7b-tp8.sh
