# Sourced by the demos: prints commands and runs them, and how long each step took.
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

tenths() { printf '%d.%d' $(($1 / 10)) $(($1 % 10)); }
step_begin=  # $EPOCHREALTIME when the present step began; empty between two steps
step_ends() {
  local took_us
  [ -n "$step_begin" ] || return 0
  took_us=$((${EPOCHREALTIME/./} - ${step_begin/./}))
  step_begin=
  # A step of less than a millisecond is a line of text before another one.
  [ "$took_us" -lt 1000 ] || printf '   (%s s)\n' "$(tenths $(((took_us + 50000) / 100000)))"
}
# Begins a step, and says how long the step before took.
say() {
  step_ends
  printf '\n-- %s\n' "$*"
  step_begin=$EPOCHREALTIME
}
# timed TEXT COMMAND…   runs a step of one command that prints nothing while all goes well
timed() {
  step_ends
  note "$1"
  step_begin=$EPOCHREALTIME
  "${@:2}"
  step_ends
}
# The last line of a demo. bash counts SECONDS from where the demo set it to 0.
say_done() {
  step_ends
  printf '\nDone, in %d s.\n' "$SECONDS"
}
