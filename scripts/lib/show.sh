# Sourced by demos: shows commands as they are run.
# shellcheck shell=bash

# Shows a command, then runs it.
run() {
  printf '\n$ %s\n' "${*@Q}" | sed "s/'\([A-Za-z0-9_.,:=@%/+-]*\)'/\1/g"
  "$@"
}
# The same for a line with pipes.
run_line() {
  printf '\n$ %s\n' "$1"
  bash -c "$1"
}
say() { printf '\n-- %s\n' "$*"; }
