# bash: what `knap` can take, as `knap completion bash` prints it. Nothing that is completed is ever evaluated.
_knap() {
  local line directive=''
  COMPREPLY=()
  while IFS= read -r line; do
    if [ -z "$directive" ]; then directive=$line; else COMPREPLY+=("$line"); fi
  done < <(command knap __complete bash "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null)
  type compopt >/dev/null 2>&1 || return 0 # bash 3.2 of macOS completes files where nothing else fits
  case $directive in
    files*) ;;
    folders*) compopt +o default -o dirnames ;;
    *nospace*) compopt +o default -o nospace ;;
    *) compopt +o default ;;
  esac
}
complete -o default -F _knap knap
