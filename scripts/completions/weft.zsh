#compdef weft
# zsh completion for weft(1). `weft --complete` has the answers.

_weft() {
  local line word=${(Q)PREFIX} ret=1
  local -a before answers open
  (( CURRENT > 2 )) && before=("${(@Q)words[2,CURRENT-1]}")
  compset -P '--*='
  for line in "${(@f)$(weft --complete "${before[@]}" "$word" 2>/dev/null)}"; do
    case $line in
      '') ;;
      :open) open=(-S '') ;;
      :files) _files && ret=0 ;;
      :directories) _directories && ret=0 ;;
      :groups) _groups && ret=0 ;;
      *) answers+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
    esac
  done
  (( ${#answers} )) && _describe answer answers "${open[@]}" && ret=0
  return ret
}

if [[ $funcstack[1] == _weft ]]; then _weft "$@"; else compdef _weft weft; fi
