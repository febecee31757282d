# fish: what `knap` can take, as `knap completion fish` prints it. Nothing that is completed is ever evaluated.
function __knap_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -l rows (command knap __complete fish $words "$word" 2>/dev/null)
    switch "$rows[1]"
        case 'files*'
            __fish_complete_path "$word"
        case 'folders*'
            __fish_complete_directories "$word"
        case '*'
            set -e rows[1]
            test (count $rows) -gt 0; and printf '%s\n' $rows
    end
end
complete -c knap -f -a '(__knap_complete)'
