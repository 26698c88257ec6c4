# bash completion for weft(1)

_weft_options() {
  case $1 in
    import) echo "--name --dataset --inherit --add --move --links --parent --find-parent --no-find-parent --keep --tag --message --metric --durability --json --quiet --store --trust-store --help" ;;
    export) echo "--json --quiet --store --trust-store --help" ;;
    ls) echo "--tensors --removed --names --json --quiet --store --trust-store --help" ;;
    info) echo "--graph --json --quiet --store --trust-store --help" ;;
    log) echo "--json --quiet --store --trust-store --help" ;;
    lineage) echo "--ancestors --descendants --owners --dot --svg --json --quiet --store --trust-store --help" ;;
    diff) echo "--norms --json --quiet --store --trust-store --help" ;;
    find) echo "--null --sort --top --columns --json --quiet --store --trust-store --help" ;;
    match) echo "--top --by --json --quiet --store --trust-store --help" ;;
    advise) echo "--csv --metric --step --until --requests --rate --t-infer --t-train --t-save --t-load --epoch --fit --schedule --follow --json --quiet --store --trust-store --help" ;;
    note) echo "--message --metric --json --quiet --store --trust-store --help" ;;
    mv) echo "--json --quiet --store --trust-store --help" ;;
    tag) echo "--delete --log --names --json --quiet --store --trust-store --help" ;;
    rm) echo "--all --keep --keep-best --force --dry-run --json --quiet --store --trust-store --help" ;;
    undelete) echo "--json --quiet --store --trust-store --help" ;;
    gc) echo "--dry-run --all --json --quiet --store --trust-store --help" ;;
    du) echo "--origin --json --quiet --store --trust-store --help" ;;
    fsck) echo "--repair --from --rebuild --accept-loss --quick --json --quiet --store --trust-store --help" ;;
    scrub) echo "--rate --for --json --quiet --store --trust-store --help" ;;
    mount) echo "--options --upgrade --foreground --quiet --store --trust-store --help" ;;
    umount) echo "--lazy --quiet --store --trust-store --help" ;;
    wait) echo "--newer-than --durable --here --timeout --json --quiet --store --trust-store --help" ;;
    watch) echo "--since --exec --json --quiet --store --trust-store --help" ;;
    unpin) echo "--json --quiet --store --trust-store --help" ;;
    prefetch) echo "--layers --json --quiet --store --trust-store --help" ;;
    evict) echo "--all --keep --dry-run --json --quiet --store --trust-store --help" ;;
    stage-out) echo "--evictable --new-origin --json --quiet --store --trust-store --help" ;;
    pin) echo "--delete --json --quiet --store --trust-store --help" ;;
    cache) echo "--max --json --quiet --store --trust-store --help" ;;
    status) echo "--all --json --quiet --store --trust-store --help" ;;
    peers) echo "--json --quiet --store --trust-store --help" ;;
    debug) echo "--json --quiet --store --trust-store --help" ;;
    init) echo "--group --json --quiet --store --trust-store --help" ;;
    restore) echo "--accept-loss --registry --json --quiet --store --trust-store --help" ;;
    completion) echo "--quiet --store --trust-store --help" ;;
    *) echo "--store --trust-store --help --version" ;;
  esac
}

# MODEL, or MODEL@V once an @ is typed. Readline cuts words at @, so what it has already is taken off the answers.
_weft_models() {
  local store=("${@:2}") word=$1 names
  if [[ $word == *@* ]]; then
    names=$(weft ls "${word%%@*}" --names "${store[@]}" 2>/dev/null
      weft tag "${word%%@*}" --names "${store[@]}" 2>/dev/null)
    [[ -z $names ]] || names+=" ${word%%@*}@latest"
    mapfile -t COMPREPLY < <(compgen -W "$names" -- "$word")
    [[ $COMP_WORDBREAKS == *@* ]] && COMPREPLY=("${COMPREPLY[@]#"${word%@*}@"}")
  else
    names=$(weft ls --names "${store[@]}" 2>/dev/null)
    mapfile -t COMPREPLY < <(compgen -W "$names" -- "$word")
  fi
}

# MODEL@V of removed versions.
_weft_removed() {
  local store=("${@:2}") word=$1 names
  names=$(weft ls --removed --names "${store[@]}" 2>/dev/null)
  mapfile -t COMPREPLY < <(compgen -W "$names" -- "$word")
  [[ $word == *@* && $COMP_WORDBREAKS == *@* ]] && COMPREPLY=("${COMPREPLY[@]#"${word%@*}@"}")
}

_weft_mounts() {
  local what where kind rest
  while read -r what where kind rest; do
    [[ $kind != fuse.weft ]] || printf '%b\n' "$where"
  done </proc/self/mounts
}

_weft() {
  local line=${COMP_LINE:0:COMP_POINT} words command= store=() i
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  local last=$((${#words[@]} - 1))
  local word=${words[last]} before=${words[last - 1]}
  for ((i = 1; i < last; ++i)); do
    if [[ ${words[i]} == --store ]]; then
      ((i + 1 < last)) && store=(--store "${words[++i]/#\~/$HOME}")
    elif [[ ${words[i]} == --store=* ]]; then
      store=(--store "${words[i]#*=}")
    elif [[ -z $command && ${words[i]} != -* ]]; then
      command=${words[i]}
    fi
  done
  COMPREPLY=()
  if [[ $before == --store || $word == --store=* ]]; then
    mapfile -t COMPREPLY < <(compgen -d -- "${word#--store=}")
  elif [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_weft_options "$command")" -- "$word")
  elif [[ $before == --graph ]]; then
    mapfile -t COMPREPLY < <(compgen -W "json dot" -- "$word")
  elif [[ $before == --durability ]]; then
    mapfile -t COMPREPLY < <(compgen -W "memory local origin" -- "$word")
  elif [[ $before == --sort ]]; then
    mapfile -t COMPREPLY < <(compgen -W "version time bytes metric. -version -time -bytes -metric." -- "$word")
  elif [[ $before == --fit ]]; then
    mapfile -t COMPREPLY < <(compgen -W "exp2 exp3 expd3 lin2 pow3" -- "$word")
  elif [[ $before == --schedule ]]; then
    mapfile -t COMPREPLY < <(compgen -W "fixed greedy best" -- "$word")
  elif [[ $before == --csv ]]; then
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
  elif [[ $before == --parent || $before == -p || $before == --inherit || $before == --name || $before == -n ]]; then
    _weft_models "$word" "${store[@]}"
  else
    case $command in
      "") mapfile -t COMPREPLY < <(compgen -W "import export ls info log lineage diff find match advise tag note mv rm undelete gc du fsck scrub mount umount pin unpin prefetch evict stage-out cache status peers init \
            restore wait watch debug completion help" -- "$word") ;;
      ls | info | log | lineage | diff | advise | tag | note | mv | rm | du | pin | unpin | prefetch | evict | stage-out | wait | watch) _weft_models "$word" "${store[@]}" ;;
      export) [[ $before == export ]] && _weft_models "$word" "${store[@]}" ||
        mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
      undelete) _weft_removed "$word" "${store[@]}" ;;
      match) _weft_models "$word" "${store[@]}"
        mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$word") ;;
      debug) mapfile -t COMPREPLY < <(compgen -f -W "$([[ $before == debug ]] && echo pack toc journal manifest)" -- "$word") ;;
      import) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
      umount) mapfile -t COMPREPLY < <(compgen -W "$(_weft_mounts)" -- "$word") ;;
      mount | restore) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
      completion) mapfile -t COMPREPLY < <(compgen -W "bash zsh fish" -- "$word") ;;
    esac
  fi
}

complete -o filenames -o bashdefault -F _weft weft
