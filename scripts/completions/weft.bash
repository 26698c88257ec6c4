# bash completion for weft(1). `weft --complete` has the answers.

_weft() {
  local line=${COMP_LINE:0:COMP_POINT} words answer
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  local word=${words[-1]} value=${words[-1]} more=()
  [[ $word == --*=* ]] && value=${word#*=}
  COMPREPLY=()
  while IFS=$'\t' read -r answer _; do
    case $answer in
      :open) compopt -o nospace 2>/dev/null ;;
      :files) mapfile -t -O "${#more[@]}" more < <(compgen -f -- "$value") ;;
      :directories) mapfile -t -O "${#more[@]}" more < <(compgen -d -- "$value") ;;
      :groups) mapfile -t -O "${#more[@]}" more < <(compgen -g -- "$value") ;;
      *) COMPREPLY+=("$answer") ;;
    esac
  done < <(weft --complete "${words[@]:1}" 2>/dev/null)
  # Readline cuts words at @, and takes only what follows.
  [[ $word == *@* && $COMP_WORDBREAKS == *@* ]] && COMPREPLY=("${COMPREPLY[@]#"${word%@*}@"}")
  COMPREPLY+=("${more[@]}")
}

complete -o filenames -o bashdefault -F _weft weft
