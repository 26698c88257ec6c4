# fish completion for weft(1)

# The --store of the command line, if it has one.
function __weft_store
    set -l words (commandline -opc)
    for i in (seq (count $words))
        set -l value
        if test "$words[$i]" = --store; and test $i -lt (count $words)
            set value $words[(math $i + 1)]
        else if string match -q -- '--store=*' $words[$i]
            set value (string replace -- --store= '' $words[$i])
        end
        if test -n "$value"
            printf '%s\n' --store (string replace -r '^~(?=/|$)' $HOME -- $value)
        end
    end
end

function __weft_models
    set -l word (commandline -ct)
    if string match -q '*@*' -- $word
        weft ls (string split -m 1 @ -- $word)[1] --names (__weft_store) 2>/dev/null
    else
        weft ls --names (__weft_store) 2>/dev/null
    end
end

complete -c weft -f
complete -c weft -l store -x -a '(__fish_complete_directories)' -d 'the store'
complete -c weft -s q -l quiet -d 'no progress bar and no remarks'
complete -c weft -s h -l help -d 'help'
complete -c weft -n __fish_use_subcommand -s V -l version -d 'version'
complete -c weft -n __fish_use_subcommand -a import -d 'publish files as a new version of a model'
complete -c weft -n __fish_use_subcommand -a export -d 'write the files of a version into a directory'
complete -c weft -n __fish_use_subcommand -a ls -d 'list models, versions or files'
complete -c weft -n __fish_use_subcommand -a info -d 'show all that is known about a version'
complete -c weft -n __fish_use_subcommand -a find -d 'list the versions that a pattern is true of'
complete -c weft -n __fish_use_subcommand -a match -d 'show versions whose architecture begins in the same way'
complete -c weft -n __fish_use_subcommand -a log -d 'tell the history of a model or of a version'
complete -c weft -n __fish_use_subcommand -a lineage -d 'show where a version comes from, and what came from it'
complete -c weft -n __fish_use_subcommand -a diff -d 'compare the tensors of two versions'
complete -c weft -n __fish_use_subcommand -a tag -d 'set, move, delete or list tags'
complete -c weft -n __fish_use_subcommand -a rm -d 'remove versions'
complete -c weft -n __fish_use_subcommand -a gc -d 'give back the space that no version needs'
complete -c weft -n __fish_use_subcommand -a du -d 'show space and what sharing saves'
complete -c weft -n __fish_use_subcommand -a fsck -d 'check the store, or make its index anew'
complete -c weft -n __fish_use_subcommand -a mount -d 'mount the store as a file tree'
complete -c weft -n __fish_use_subcommand -a umount -d 'unmount a mounted store'
complete -c weft -n __fish_use_subcommand -a pin -d 'keep the files of a version assembled'
complete -c weft -n __fish_use_subcommand -a unpin -d 'delete the pin of a version'
complete -c weft -n __fish_use_subcommand -a prefetch -d 'bring the bytes of a version to this node'
complete -c weft -n __fish_use_subcommand -a evict -d 'give back the disk of fetched bytes'
complete -c weft -n __fish_use_subcommand -a stage-out -d 'wait until versions are at the origin'
complete -c weft -n __fish_use_subcommand -a cache -d 'show or bound the cache of assembled files'
complete -c weft -n __fish_use_subcommand -a status -d 'show the store and where it is mounted'
complete -c weft -n __fish_use_subcommand -a peers -d 'list the daemons of the cluster'
complete -c weft -n __fish_use_subcommand -a init -d 'make an empty store'
complete -c weft -n __fish_use_subcommand -a restore -d 'make a store, or a registry, again from an origin'
complete -c weft -n __fish_use_subcommand -a completion -d 'print the completions of a shell'
complete -c weft -n '__fish_seen_subcommand_from import' -l json -d 'print one JSON value'
complete -c weft -n '__fish_seen_subcommand_from export' -l json -d 'print one JSON value'
complete -c weft -n '__fish_seen_subcommand_from ls' -l json -d 'print one JSON value'
complete -c weft -n '__fish_seen_subcommand_from info' -l json -d 'print one JSON value'
complete -c weft -n '__fish_seen_subcommand_from log' -l json -d 'print one JSON value'
complete -c weft -n '__fish_seen_subcommand_from find' -l json -d 'print one JSON value'
complete -c weft -n '__fish_seen_subcommand_from match' -l json -d 'print one JSON value'
complete -c weft -n '__fish_seen_subcommand_from lineage' -l json -d 'print one JSON value'
complete -c weft -n '__fish_seen_subcommand_from diff' -l json -d 'print one JSON value'
complete -c weft -n '__fish_seen_subcommand_from tag' -l json -d 'print one JSON value'
complete -c weft -n '__fish_seen_subcommand_from rm' -l json -d 'print one JSON value'
complete -c weft -n '__fish_seen_subcommand_from gc' -l json -d 'print one JSON value'
complete -c weft -n '__fish_seen_subcommand_from du' -l json -d 'print one JSON value'
complete -c weft -n '__fish_seen_subcommand_from fsck' -l json -d 'print one JSON value'
complete -c weft -n '__fish_seen_subcommand_from pin' -l json -d 'print one JSON value'
complete -c weft -n '__fish_seen_subcommand_from unpin' -l json -d 'print one JSON value'
complete -c weft -n '__fish_seen_subcommand_from prefetch' -l json -d 'print one JSON value'
complete -c weft -n '__fish_seen_subcommand_from evict' -l json -d 'print one JSON value'
complete -c weft -n '__fish_seen_subcommand_from stage-out' -l json -d 'print one JSON value'
complete -c weft -n '__fish_seen_subcommand_from cache' -l json -d 'print one JSON value'
complete -c weft -n '__fish_seen_subcommand_from status' -l json -d 'print one JSON value'
complete -c weft -n '__fish_seen_subcommand_from peers' -l json -d 'print one JSON value'
complete -c weft -n '__fish_seen_subcommand_from init' -l json -d 'print one JSON value'
complete -c weft -n '__fish_seen_subcommand_from restore' -l json -d 'print one JSON value'
complete -c weft -n '__fish_seen_subcommand_from import' -F
complete -c weft -n '__fish_seen_subcommand_from import' -s n -l name -x -a '(__weft_models)' -d 'name of the model'
complete -c weft -n '__fish_seen_subcommand_from import' -l inherit -x -a '(__weft_models)' -d 'take the files of this version'
complete -c weft -n '__fish_seen_subcommand_from import' -l add -d 'also what it lacks'
complete -c weft -n '__fish_seen_subcommand_from import' -s p -l parent -x -a '(__weft_models)' -d 'made from this version'
complete -c weft -n '__fish_seen_subcommand_from import' -l find-parent -x -d 'part to share'
complete -c weft -n '__fish_seen_subcommand_from import' -l no-find-parent -d 'look for no parent'
complete -c weft -n '__fish_seen_subcommand_from import' -s t -l tag -x -d 'tag'
complete -c weft -n '__fish_seen_subcommand_from import' -s m -l message -x -d 'message'
complete -c weft -n '__fish_seen_subcommand_from import' -l metric -x -d 'KEY=VALUE'
complete -c weft -n '__fish_seen_subcommand_from export' -a '(__weft_models)'
complete -c weft -n '__fish_seen_subcommand_from ls' -a '(__weft_models)'
complete -c weft -n '__fish_seen_subcommand_from info' -a '(__weft_models)'
complete -c weft -n '__fish_seen_subcommand_from log' -a '(__weft_models)'
complete -c weft -n '__fish_seen_subcommand_from info' -l graph -x -a 'json dot' -d 'the graph of layers'
complete -c weft -n '__fish_seen_subcommand_from find' -s 0 -l null -d 'end names with a NUL byte'
complete -c weft -n '__fish_seen_subcommand_from match' -a '(__weft_models)' -F
complete -c weft -n '__fish_seen_subcommand_from match' -l top -x -d 'show so many'
complete -c weft -n '__fish_seen_subcommand_from match' -l by -x -a 'prefix' -d 'what decides between equals'
complete -c weft -n '__fish_seen_subcommand_from lineage' -a '(__weft_models)'
complete -c weft -n '__fish_seen_subcommand_from lineage' -l ancestors -d 'what it comes from'
complete -c weft -n '__fish_seen_subcommand_from lineage' -l descendants -d 'what came from it'
complete -c weft -n '__fish_seen_subcommand_from lineage' -l owners -d 'who first had each tensor'
complete -c weft -n '__fish_seen_subcommand_from lineage' -l dot -d 'as a graph'
complete -c weft -n '__fish_seen_subcommand_from lineage' -l svg -d 'as a picture'
complete -c weft -n '__fish_seen_subcommand_from diff' -a '(__weft_models)'
complete -c weft -n '__fish_seen_subcommand_from diff' -l norms -d 'how far tensors moved'
complete -c weft -n '__fish_seen_subcommand_from tag' -a '(__weft_models)'
complete -c weft -n '__fish_seen_subcommand_from rm' -a '(__weft_models)'
complete -c weft -n '__fish_seen_subcommand_from du' -a '(__weft_models)'
complete -c weft -n '__fish_seen_subcommand_from pin' -a '(__weft_models)'
complete -c weft -n '__fish_seen_subcommand_from pin' -s d -l delete -d 'delete the pin'
complete -c weft -n '__fish_seen_subcommand_from unpin' -a '(__weft_models)'
complete -c weft -n '__fish_seen_subcommand_from prefetch' -a '(__weft_models)'
complete -c weft -n '__fish_seen_subcommand_from evict' -a '(__weft_models)'
complete -c weft -n '__fish_seen_subcommand_from stage-out' -a '(__weft_models)'
complete -c weft -n '__fish_seen_subcommand_from prefetch' -l layers -x -d 'only these layers or tensors'
complete -c weft -n '__fish_seen_subcommand_from evict' -l all -d 'of all versions'
complete -c weft -n '__fish_seen_subcommand_from evict' -l keep -x -d 'leave so much'
complete -c weft -n '__fish_seen_subcommand_from evict' -s n -l dry-run -d 'change nothing'
complete -c weft -n '__fish_seen_subcommand_from stage-out' -l evictable -d 'make the bytes cache here'
complete -c weft -n '__fish_seen_subcommand_from stage-out' -l new-origin -d 'take the directory for the origin'
complete -c weft -n '__fish_seen_subcommand_from du' -l origin -d 'what is at the origin'
complete -c weft -n '__fish_seen_subcommand_from import' -l durability -x -a 'local origin' -d 'where it is when this returns'
complete -c weft -n '__fish_seen_subcommand_from import' -l sync -d 'as --durability origin'
complete -c weft -n '__fish_seen_subcommand_from cache' -l max -x -d 'how much it may hold'
complete -c weft -n '__fish_seen_subcommand_from export' -a '(__fish_complete_directories)'
complete -c weft -n '__fish_seen_subcommand_from ls' -s l -l tensors -d 'show tensors'
complete -c weft -n '__fish_seen_subcommand_from ls' -l names -d 'names alone'
complete -c weft -n '__fish_seen_subcommand_from tag' -s d -l delete -d 'delete the tag'
complete -c weft -n '__fish_seen_subcommand_from rm' -l all -d 'all versions of a model'
complete -c weft -n '__fish_seen_subcommand_from gc' -l dry-run -d 'change nothing'
complete -c weft -n '__fish_seen_subcommand_from gc' -l all -d 'rewrite every pack that has dead bytes'
complete -c weft -n '__fish_seen_subcommand_from fsck' -l rebuild -d 'make the index anew'
complete -c weft -n '__fish_seen_subcommand_from fsck' -l accept-loss -d 'rebuild without what the journal has lost'
complete -c weft -n '__fish_seen_subcommand_from fsck' -l quick -d 'do not read the blobs'
complete -c weft -n '__fish_seen_subcommand_from mount' -a '(__fish_complete_directories)'
complete -c weft -n '__fish_seen_subcommand_from mount' -s o -l options -x -d 'mount options'
complete -c weft -n '__fish_seen_subcommand_from mount' -l upgrade -d 'go on with the mount.weft of now'
complete -c weft -n '__fish_seen_subcommand_from mount' -s f -l foreground -d 'stay in the foreground'
complete -c weft -n '__fish_seen_subcommand_from umount' -a '(__fish_complete_directories)'
complete -c weft -n '__fish_seen_subcommand_from umount' -s l -l lazy -d 'detach it now'
complete -c weft -n '__fish_seen_subcommand_from init' -l group -x -a '(__fish_complete_groups)' -d 'a group that may read the store'
complete -c weft -n '__fish_seen_subcommand_from restore' -a '(__fish_complete_directories)'
complete -c weft -n '__fish_seen_subcommand_from restore' -l accept-loss -d 'go on without what is lost'
complete -c weft -n '__fish_seen_subcommand_from restore' -l registry -d 'the registry of the cluster'
complete -c weft -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'
