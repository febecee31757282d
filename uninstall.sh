#!/usr/bin/env bash
# Take Knapper away again on Linux or macOS; notes, journal and settings stay. ./uninstall.sh --help says more.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: ./uninstall.sh [--yes] [--dry-run] | --help

Stop and remove the service, take the plugin out of your vaults, Knapper out of the settings of MCP clients and its
completions out of your shells, then ask, and remove the program. Your notes, the journal with what can be undone, the index and the settings stay, and are
named.

  --yes      remove the program without asking; needed where nobody can be asked
  --dry-run  say what would be done
TEXT
}

say() { echo "uninstall: $*"; }
run() {
  if [ "$dry" = 1 ]; then say "would run: $*"; else "$@"; fi
}

confirm() { # QUESTION: true where somebody says yes; Enter means no
  local answer=""
  [ "$yes" = 0 ] && [ "$dry" = 0 ] || return 0
  if [ -t 0 ]; then
    read -r -p "uninstall: $1 [y/N] " answer || true
  else
    say "nobody can be asked here: $1"
  fi
  case $answer in [yY] | [yY][eE][sS]) return 0 ;; *) return 1 ;; esac
}

dry=0 yes=0
for argument in "$@"; do
  case $argument in
    -h | --help) usage && exit ;;
    --dry-run) dry=1 ;;
    -y | --yes) yes=1 ;;
    *) say "'$argument' isn't known; ./uninstall.sh --help says what there is" >&2 && exit 2 ;;
  esac
done

home=$HOME/.local/opt/knapper bin=$HOME/.local/bin man=$HOME/.local/share/man/man1
knap=$(command -v knap || true)
[ -n "$knap" ] || { [ ! -x "$bin/knap" ] || knap=$bin/knap; }
config="" state=""
if [ -n "$knap" ]; then
  config=$("$knap" config path 2>/dev/null || true)
  state=$("$knap" config --json 2>/dev/null | sed -n '/"state_dir": {/,/}/s/.*"value": "\(.*\)",*$/\1/p' | head -n 1 || true)
  run "$knap" service uninstall || say "the service couldn't be removed; see above"
  if [ "$dry" = 0 ] && "$knap" service status >/dev/null 2>&1; then
    say "a server that isn't the service still runs: end it where it was started, by Ctrl-C"
  fi
  vaults=$("$knap" config --json 2>/dev/null | sed -n 's/^ *"vaults\.\(.*\)\.path": {$/\1/p' || true)
  while IFS= read -r vault; do
    [ -z "$vault" ] || run "$knap" plugin uninstall --vault "$vault" || say "the plugin couldn't be removed; see above"
  done <<<"$vaults"
  run "$knap" mcp uninstall --all || say "not every MCP client could be disconnected; see above"
  for shell in bash zsh fish; do
    run "$knap" completion uninstall "$shell" | grep -v '^nothing was installed$' || true
  done
fi

if ! confirm "Remove the program itself?"; then
  say "the program stays; ./uninstall.sh --yes removes it"
  exit 0
fi

removed=0
if command -v uv >/dev/null && uv tool list 2>/dev/null | grep -q '^knapper '; then
  run uv tool uninstall knapper && removed=1
fi
if command -v pipx >/dev/null && pipx list --short 2>/dev/null | grep -q '^knapper '; then
  run pipx uninstall knapper && removed=1
fi
if [ -d "$home" ]; then
  run rm -rf "$home" && removed=1
  [ "$dry" = 1 ] || say "removed $home"
fi
if [ -L "$bin/knap" ] && [ "$(readlink "$bin/knap")" = "$home/bin/knap" ]; then
  run rm "$bin/knap"
  [ "$dry" = 1 ] || say "removed $bin/knap"
fi
pages=()
for page in "$man"/knap*.1; do
  if [ -L "$page" ]; then
    case $(readlink "$page") in "$home"/*) pages+=("$page") ;; esac
  fi
done
if [ ${#pages[@]} -gt 0 ]; then
  [ "$dry" = 1 ] || rm "${pages[@]}"
  say "$([ "$dry" = 0 ] || echo "would have ")removed ${#pages[@]} man pages in $man"
fi
[ "$removed" = 1 ] || say "no installation was found"
say "what stays: your notes${config:+; the settings in $config, and prompts beside them}${state:+; the index and the journal in $state}"
say "in a vault's .obsidian stay Obsidian's list of plugins and the plugin's settings (data.json)"
say "beside the settings of MCP clients stay copies of how they were"
