#compdef weft
# zsh completion for weft(1)

_weft_models() {
  local -a names
  (( ${+opt_args[--store]} )) && store=(--store ${~${(Q)opt_args[--store]}})
  if [[ $PREFIX == *@* ]]; then
    names=(${(f)"$(weft ls ${PREFIX%%@*} --names $store 2>/dev/null)"})
  else
    names=(${(f)"$(weft ls --names $store 2>/dev/null)"})
    compadd -S '' -- $names
    return
  fi
  compadd -- $names
}

_weft() {
  local curcontext=$curcontext state
  local -A opt_args
  local -a common json store
  common=('(-q --quiet)'{-q,--quiet}'[no progress bar and no remarks]' '--store=[the store]:store:_directories'
    '--trust-store[use a store that others can write to]' '(-h --help)'{-h,--help}'[help]')
  json=('--json[print one JSON value]')
  _arguments -C '--store=[the store]:store:_directories' '--trust-store[use a store that others can write to]' \
    '(-h --help)'{-h,--help}'[help]' \
    '(-V --version)'{-V,--version}'[version]' '(-)1:command:->command' '(-)*::argument:->argument'
  (( ${+opt_args[--store]} )) && store=(--store ${~${(Q)opt_args[--store]}})
  if [[ $state == command ]]; then
    local -a commands
    commands=('import:publish files as a new version of a model' 'export:write the files of a version into a directory'
      'ls:list models, versions or files' 'info:show all that is known about a version'
      'log:tell the history of a model or of a version'
      'lineage:show where a version comes from, and what came from it' 'diff:compare the tensors of two versions'
      'find:list the versions that a pattern is true of'
      'match:show versions whose architecture begins in the same way' 'tag:set, move, delete or list tags' 'rm:remove versions'
      'gc:give back the space that no version needs' 'du:show space and what sharing saves'
      'fsck:check the store, or make its index anew' 'scrub:read the whole store slowly'
      'mount:mount the store as a file tree'
      'umount:unmount a mounted store' 'pin:keep files of a version assembled' 'unpin:delete the pin of a version' 'prefetch:bring the bytes of a version to this node'
      'evict:give back the disk of fetched bytes' 'stage-out:wait until versions are at the origin'
      'cache:show or bound the cache of assembled files'
      'status:show the store and where it is mounted' 'peers:list the daemons of the cluster'
      'init:make an empty store' 'restore:make a store, or a registry, again from an origin'
      'completion:print the completions of a shell')
    _describe command commands
    return
  fi
  case $words[1] in
    import) _arguments $common $json '(-n --name)'{-n,--name}'[name of the model]:model:_weft_models' \
      '--inherit[take the files of this version]:version:_weft_models' '--add[also what it lacks]' \
      '*'{-p,--parent}'[made from this version]:version:_weft_models' '--find-parent[part to share]:part:' \
      '--no-find-parent[look for no parent]' '*'{-t,--tag}'[tag]:tag:' \
      '(-m --message)'{-m,--message}'[message]:text:' '*--metric[figure]:KEY=VALUE:' \
      '--durability[where it is when this returns]:where:(local origin)' '--sync[as --durability origin]' '*:path:_files' ;;
    export) _arguments $common $json '1:version:_weft_models' '2:directory:_directories' ;;
    ls) _arguments $common $json '(-l --tensors)'{-l,--tensors}'[show tensors]' '--names[names alone]' \
      '1:model:_weft_models' ;;
    info) _arguments $common $json '--graph[the graph of layers]:format:(json dot)' '1:version:_weft_models' ;;
    log) _arguments $common $json '1:model:_weft_models' ;;
    lineage) _arguments $common $json '--ancestors[what it comes from]' '--descendants[what came from it]' \
      '--owners[who first had each tensor]' '--dot[as a graph]' '--svg[as a picture]' '1:version:_weft_models' ;;
    diff) _arguments $common $json '--norms[how far tensors moved]' '1:before:_weft_models' '2:after:_weft_models' ;;
    find) _arguments $common $json '(-0 --null)'{-0,--null}'[end names with a NUL byte]' '1:query:' ;;
    match) _arguments $common $json '--top[show so many]:number:' '--by[what decides between equals]:order:(prefix)' \
      '1:version:_weft_models' ;;
    tag) _arguments $common $json '(-d --delete)'{-d,--delete}'[delete the tag]' '1:version:_weft_models' '2:tag:' ;;
    rm) _arguments $common $json '--all[all versions of a model]' '*:version:_weft_models' ;;
    gc) _arguments $common $json '--dry-run[change nothing]' '--all[rewrite every pack that has dead bytes]' ;;
    du) _arguments $common $json '--origin[what is at the origin]' '1:model:_weft_models' ;;
    fsck) _arguments $common $json '--rebuild[make the index anew]' '--accept-loss[rebuild without what the journal has lost]' '--quick[do not read the blobs]' '--repair[store damaged content again]' '*--from[look for it there first]:PATH:_files' ;;
    scrub) _arguments $common $json '--rate[bytes a second]:BYTES:' '--for[stop after that long]:TIME:' ;;
    mount) _arguments $common '*'{-o,--options}'[mount options]:options:' \
      '--upgrade[go on with the mount.weft of now]' \
      '(-f --foreground)'{-f,--foreground}'[stay in the foreground]' '1:directory:_directories' ;;
    umount) _arguments $common '(-l --lazy)'{-l,--lazy}'[detach it now]' '1:directory:_directories' ;;
    pin) _arguments $common $json '(-d --delete)'{-d,--delete}'[delete the pin]' '1:version:_weft_models' ;;
    unpin) _arguments $common $json '1:version:_weft_models' ;;
    stage-out) _arguments $common $json '--evictable[make the bytes cache here]' '--new-origin[take the directory for the origin]' '1:version:_weft_models' ;;
    prefetch) _arguments $common $json '--layers[only these layers or tensors]:pattern:' '1:version:_weft_models' ;;
    evict) _arguments $common $json '--all[of all versions]' '--keep[leave so much]:SIZE:' \
      '(-n --dry-run)'{-n,--dry-run}'[change nothing]' '1:version:_weft_models' ;;
    cache) _arguments $common $json '--max[how much it may hold]:SIZE:' ;;
    status) _arguments $common $json ;;
    peers) _arguments $common $json ;;
    init) _arguments $common $json '--group[a group that may read the store]:group:_groups' ;;
    restore) _arguments $common $json '--accept-loss[go on without what is lost]' '--registry[the cluster'\''s registry]' '1:directory:_directories' ;;
    completion) _arguments $common '1:shell:(bash zsh fish)' ;;
  esac
}

if [[ $funcstack[1] == _weft ]]; then _weft "$@"; else compdef _weft weft; fi
