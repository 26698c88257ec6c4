# Sourced by the demos: prints commands and runs them.
# shellcheck shell=bash

# Prints a command, then runs it.
run() {
  printf '\n$ %s\n' "${*@Q}" | sed "s/'\([A-Za-z0-9_.,:=@%/+-]*\)'/\1/g"
  "$@"
}
# Prints a line with pipes, then runs it.
run_line() {
  printf '\n$ %s\n' "$1"
  bash -c "$1"
}
say() { printf '\n-- %s\n' "$*"; }
