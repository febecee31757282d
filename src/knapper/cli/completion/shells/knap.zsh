#compdef knap
# zsh: what `knap` can take, as `knap completion zsh` prints it. Nothing that is completed is ever evaluated.
_knap() {
  local -a rows values shown
  local word=$PREFIX row directive
  [[ $compstate[quote] == "'" ]] || word=${(Q)PREFIX}
  rows=("${(@f)$(command knap __complete zsh "${(@Q)words[1,CURRENT-1]}" "$word" 2>/dev/null)}")
  directive=$rows[1]
  shift rows
  for row in "${(@)rows}"; do
    values+=("${(g::)row%%$'\t'*}")
    shown+=("${row#*$'\t'}")
  done
  case $directive in
    files*) _files ;;
    folders*) _files -/ ;;
    *nospace*) compadd -U -S '' -l -d shown -a -- values ;;
    none*) compadd -U -l -d shown -a -- values ;;
    *) return 1 ;;
  esac
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _knap "$@"
else # read by source
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i }
  compdef _knap knap
fi
