# fish completion for weft(1). `weft --complete` has the answers.

function __weft_answers
    set -l before (commandline -opc)
    set -e before[1]
    set -l word (commandline -ct)
    set -l option (string match -r -- '^--[^=]+=' $word; or echo)
    set -l value (string replace -- "$option" '' $word)
    for line in (weft --complete $before "$word" 2>/dev/null)
        switch $line
            case :open
            case :files
                __fish_complete_path "$value" | string replace -r '^' -- "$option"
            case :directories
                __fish_complete_directories "$value" | string replace -r '^' -- "$option"
            case :groups
                __fish_complete_groups | string replace -r '^' -- "$option"
            case '*'
                echo -- "$option$line"
        end
    end
end

complete -c weft -f -a '(__weft_answers)'
