#compdef weft
# zsh completion for weft(1)

_weft_models() {
  local -a names
  (( ${+opt_args[--store]} )) && store=(--store ${~${(Q)opt_args[--store]}})
  if [[ $PREFIX == *@* ]]; then
    names=(${(f)"$(weft ls ${PREFIX%%@*} --names $store 2>/dev/null)"}
      ${(f)"$(weft tag ${PREFIX%%@*} --names $store 2>/dev/null)"})
    (( ${#names} )) && names+=(${PREFIX%%@*}@latest)
  else
    names=(${(f)"$(weft ls --names $store 2>/dev/null)"})
    compadd -S '' -- $names
    return
  fi
  compadd -- $names
}

_weft_removed() {
  local -a names
  (( ${+opt_args[--store]} )) && store=(--store ${~${(Q)opt_args[--store]}})
  names=(${(f)"$(weft ls --removed --names $store 2>/dev/null)"})
  compadd -- $names
}

_weft_mounts() {
  local -a mounts
  mounts=(${${(M)${(f)"$(</proc/self/mounts)"}:#* fuse.weft *}[@]})
  mounts=(${${mounts#* }%% *})
  compadd -- $mounts
}

_weft() {
  local curcontext=$curcontext state
  local -A opt_args
  local -a common json store
  common=('(-q --quiet)'{-q,--quiet}'[print no progress bar and no remarks]' '--store=[the store]:store:_directories'
    '--trust-store[use a store that other users can write to]' '(-h --help)'{-h,--help}'[help]')
  json=('--json[print one JSON value]')
  _arguments -C '--store=[the store]:store:_directories' '--trust-store[use a store that other users can write to]' \
    '(-h --help)'{-h,--help}'[help]' \
    '(-V --version)'{-V,--version}'[version]' '(-)1:command:->command' '(-)*::argument:->argument'
  (( ${+opt_args[--store]} )) && store=(--store ${~${(Q)opt_args[--store]}})
  if [[ $state == command ]]; then
    local -a commands
    commands=('import:publish files as a new version of a model' 'export:write the files of a version into a directory'
      'ls:list models, the versions of a model, or the files of a version' 'info:show everything that is known about a version'
      'log:show the history of a model or of a version, newest first'
      'lineage:show the ancestors and the descendants of a version' 'diff:compare the tensors of two versions'
      'find:list the versions that match a query'
      'match:find versions whose first layers are the same' 'advise:advise a training when to save its model' 'tag:set, move, delete or list the tags of a model' 'note:change the message and the metrics of a version' 'mv:rename a model or a data set' 'rm:remove versions'
      'undelete:bring removed versions back'
      'gc:free the space that no version needs' 'du:show the space of models and versions, and what sharing saves'
      'fsck:check the store, repair it, or rebuild its index' 'scrub:read the whole store slowly'
      'mount:mount the store as a file tree'
      'umount:unmount a store' 'pin:assemble the files of a version now, and keep them' 'unpin:delete the pin of a version' 'prefetch:fetch the bytes of a version to this node'
      'evict:delete fetched bytes to free disk space' 'stage-out:wait until published versions are at the origin'
      'cache:show or limit the cache of assembled files'
      'status:show the store, its content, its mounts and its daemon' 'peers:list the daemons of the cluster'
      'debug:print what a file of a store holds' 'init:create an empty store' 'restore:recreate a store or a registry from an origin'
      'wait:wait for a version' 'watch:print what is published, tagged and removed'
      'completion:print the completion script of a shell')
    _describe command commands
    return
  fi
  case $words[1] in
    import) _arguments $common $json '(-n --name)'{-n,--name}'[name of the model]:model:_weft_models' \
      '--dataset[publish a data set]' '--inherit[start with all files of this version]:version:_weft_models' '--add[accept what it lacks]' '--move[remove the files once they are published]' \
      '*'{-p,--parent}'[made from this version]:version:_weft_models' '--find-parent[part of the bytes to share]:part:' \
      '--links[links to directories, or that lead nowhere]:what:(refuse skip follow)' \
      '--no-find-parent[do not look for a parent]' '--keep[then remove older versions without a tag]:number:' '*'{-t,--tag}'[tag]:tag:' \
      '(-m --message)'{-m,--message}'[message]:text:' '*--metric[figure]:KEY=VALUE:' \
      '--durability[where the version is when this returns]:where:(memory local origin)' '*:path:_files' ;;
    export) _arguments $common $json '1:version:_weft_models' '2:directory:_directories' ;;
    ls) _arguments $common $json '(-l --tensors)'{-l,--tensors}'[show tensors]' '--removed[list removed versions]' '--names[print only names]' \
      '1:model:_weft_models' ;;
    info) _arguments $common $json '--graph[the graph of layers]:format:(json dot)' '1:version:_weft_models' ;;
    log) _arguments $common $json '1:model:_weft_models' ;;
    lineage) _arguments $common $json '--ancestors[show only the ancestors]' '--descendants[show only the descendants]' \
      '--owners[print the first version of each tensor]' '--dot[as a graph]' '--svg[as a picture]' '1:version:_weft_models' ;;
    diff) _arguments $common $json '--norms[print how far tensors moved]' '1:before:_weft_models' '2:after:_weft_models' ;;
    find) _arguments $common $json '(-0 --null)'{-0,--null}'[end names with a NUL byte]' \
      '--sort[order by]:key:(version time bytes metric.)' '--top[list at most so many]:number:' \
      '--columns[print a table]:columns:' '1:query:' ;;
    match) _arguments $common $json '--top[show at most so many]:number:' '--by[what decides between equals]:order:(prefix)' \
      '1:version:_weft_models' ;;
    advise) _arguments $common $json '--csv[read losses from this file]:file:_files' '--metric[metric of the loss]:name:' \
      '--step[metric of the iteration]:name:' '--until[last iteration]:iteration:' '--requests[requests to come]:number:' \
      '--rate[requests in a second]:number:' '--t-infer[time between requests]:seconds:' \
      '--t-train[time of an iteration]:seconds:' '--t-save[time of a save]:seconds:' '--t-load[time of a load]:seconds:' \
      '--epoch[length of an epoch]:iterations:' '--fit[curve]:curve:(exp2 exp3 expd3 lin2 pow3)' \
      '--schedule[schedule]:name:(fixed greedy best)' '--follow[go on with new losses]' '1:model:_weft_models' ;;
    note) _arguments $common $json '(-m --message)'{-m,--message}'[message]:text:' '*--metric[figure]:KEY=VALUE:' '1:version:_weft_models' ;;
    mv) _arguments $common $json '1:model:_weft_models' '2:new name:' ;;
    tag) _arguments $common $json '(-d --delete)'{-d,--delete}'[delete the tag]' '--log[list the changes of tags]' '--names[print only names]' '1:version:_weft_models' '2:tag:' ;;
    rm) _arguments $common $json '--all[all versions of a model]' '--keep[remove old versions]:number:' \
      '--keep-best[keep the best by a metric]:metric:' '(-f --force)'{-f,--force}'[also versions with a tag]' \
      '(-n --dry-run)'{-n,--dry-run}'[change nothing]' '*:version:_weft_models' ;;
    undelete) _arguments $common $json '*:version:_weft_removed' ;;
    gc) _arguments $common $json '--dry-run[change nothing]' '--all[rewrite every pack that has dead bytes]' ;;
    du) _arguments $common $json '--origin[show what is at the origin]' '1:model:_weft_models' ;;
    fsck) _arguments $common $json '--rebuild[rebuild the index]' '--accept-loss[rebuild without the lost data]' '--quick[do not read the blobs]' '--repair[store damaged content again]' '*--from[look here first]:PATH:_files' ;;
    scrub) _arguments $common $json '--rate[bytes a second]:BYTES:' '--for[stop after this time]:TIME:' ;;
    debug) _arguments $common $json '1:what:(pack toc journal manifest)' '2:file:_files' ;;
    mount) _arguments $common '*'{-o,--options}'[mount options]:options:' \
      '--upgrade[replace the program of a live mount]' \
      '(-f --foreground)'{-f,--foreground}'[stay in the foreground]' '1:directory:_directories' ;;
    umount) _arguments $common '(-l --lazy)'{-l,--lazy}'[detach the mount now]' '1:directory:_weft_mounts' ;;
    pin) _arguments $common $json '(-d --delete)'{-d,--delete}'[delete the pin]' '1:version:_weft_models' ;;
    unpin) _arguments $common $json '1:version:_weft_models' ;;
    stage-out) _arguments $common $json '--evictable[make the bytes a cache on this node]' '--new-origin[accept the directory as the new origin]' '1:version:_weft_models' ;;
    prefetch) _arguments $common $json '--layers[only these layers or tensors]:pattern:' '1:version:_weft_models' ;;
    evict) _arguments $common $json '--all[evict the bytes of all versions]' '--keep[keep so many bytes]:SIZE:' \
      '(-n --dry-run)'{-n,--dry-run}'[change nothing]' '1:version:_weft_models' ;;
    cache) _arguments $common $json '--max[limit of the cache]:SIZE:' ;;
    status) _arguments $common $json '--all[show all that is known]' ;;
    peers) _arguments $common $json ;;
    init) _arguments $common $json '--group[a group that may read the store]:group:_groups' ;;
    restore) _arguments $common $json '--accept-loss[restore without what is damaged or missing]' '--registry[fill the registry of the cluster]' '1:directory:_directories' ;;
    wait) _arguments $common $json '--newer-than[wait for a greater number]:number:' '--durable[wait until a disk has the version]' \
      '--here[wait until its bytes are here]' '--timeout[give up after this time]:seconds:' '1:version:_weft_models' ;;
    watch) _arguments $common $json '--since[begin behind this event]:position:' '--exec[run for each event]:command:' \
      '*:model:_weft_models' ;;
    completion) _arguments $common '1:shell:(bash zsh fish)' ;;
  esac
}

if [[ $funcstack[1] == _weft ]]; then _weft "$@"; else compdef _weft weft; fi
