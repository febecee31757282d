#!/usr/bin/env bash
# Install Knapper from this folder on Linux or macOS, and set it up. ./install.sh --help says more.
set -euo pipefail
here=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")"

usage() {
  cat <<'TEXT'
Usage: ./install.sh [--dry-run] [--venv] [--wheel=FILE] [OPTIONS OF knap setup] | --help

Install Knapper from this folder for you alone, then run `knap setup`. Run it again to update.

  ./install.sh                             asks for your vault, a model, and whether to start at login
  ./install.sh --yes --vault ~/Notes       asks nothing
  ./install.sh --dry-run                   only say what would be done
  ./install.sh --wheel=knapper-1.0.whl     from a wheel that was built already, not from this folder

With uv or pipx it becomes a tool of theirs; otherwise, and with --venv, it goes into an environment of its own in
~/.local/opt/knapper, with a link to `knap` in ~/.local/bin, and to its man pages. It needs Python 3.11 or newer, and the network once.
./uninstall.sh takes it away again.

Options of `knap setup`, which are checked before anything is done:
  --vault NAME|FOLDER  --model NAME|none  --service  --no-service  --client NAME  --no-clients  --plugin  --no-plugin
  --e5  --port NUMBER  --interval MINUTES  --state-dir FOLDER  --yes  --config FILE  --env-file FILE  --json  --quiet
  --no-color  --no-server
TEXT
}

say() { echo "install: $*"; }
run() { # COMMAND...: carry it out, or only show it
  if [ "$dry" = 1 ]; then say "would run: $*"; else "$@"; fi
}
failed() {
  say "the packages couldn't be installed: see above. This needs the network once; run it again to continue" >&2
  exit 1
}

refuse() { # WHY: nothing has been done yet
  say "$1; nothing was installed; ./install.sh --help says what there is" >&2
  exit 2
}

has_settings() { # true where vaults may be configured, which --vault can name
  local file
  for file in "$config" "${KNAP_CONFIG:-}" "${XDG_CONFIG_HOME:-$HOME/.config}/knapper/config.toml" \
    "$HOME/Library/Application Support/knapper/config.toml"; do
    [ ! -f "$file" ] || return 0
  done
  return 1
}

check_vault() { # NAME|FOLDER: what setup would refuse only after everything was installed
  local folder=$1
  case $folder in
    "" | "~"[!/]*) return 0 ;; # setup looks at these
    "~" | "~/"*) folder=$HOME${folder#"~"} ;;
    /*) ;;
    *) folder=$here/$folder ;;
  esac
  [ ! -d "$folder" ] || return 0
  case $1 in */*) ;; *) ! has_settings || return 0 ;; esac
  refuse "there is no folder $folder"
}

dry=0 venv_only=0 what=. vault="" config="" rest=()
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) usage && exit ;;
    --dry-run) dry=1 ;;
    --venv) venv_only=1 ;;
    --wheel=*) what=${1#--wheel=} ;;
    --service | --no-service | --no-clients | --plugin | --no-plugin | --e5 | --json | --no-color | --no-server | \
      -y | --yes | -q | --quiet | -yq | -qy) rest+=("$1") ;;
    --model | --client | --port | --interval | --state-dir | --vault | --config | --env-file | -v)
      [ $# -gt 1 ] || refuse "$1 needs a value"
      case $1 in --vault | -v) vault=$2 ;; --config) config=$2 ;; esac
      rest+=("$1" "$2")
      shift
      ;;
    --model=* | --client=* | --port=* | --interval=* | --state-dir=* | --vault=* | --config=* | --env-file=* | -v?*)
      case $1 in --vault=*) vault=${1#*=} ;; -v*) vault=${1#-v} ;; --config=*) config=${1#*=} ;; esac
      rest+=("$1")
      ;;
    *) refuse "'$1' isn't known" ;;
  esac
  shift
done
check_vault "$vault"

case $what in . | /*) ;; *) what=$here/$what ;; esac
[ -e "$what" ] || { say "there is no $what" >&2 && exit 1; }

case $(uname -s) in
  Linux) system=Linux ;;
  Darwin) system=macOS ;;
  *) say "this system isn't known; on Windows run install.ps1" >&2 && exit 1 ;;
esac
say "system: $system"

find_python() { # [MODULE]: the real interpreter, not the shim of a version manager, which a service couldn't start
  local name module=${1:-os} names=(python3.13 python3.14 python3.12 python3.11 python3.15 python3)
  [ -z "${PYTHON:-}" ] || names=("$PYTHON")
  for name in "${names[@]}"; do
    "$name" -c "import os, sys, $module; assert sys.version_info >= (3, 11); print(os.path.realpath(sys.executable))" \
      2>/dev/null && return
  done
  return 1
}

python=$(find_python) || {
  say "there is no Python 3.11 or newer here" >&2
  say "install one, such as with $([ "$system" = macOS ] && echo "brew install python" || echo "sudo apt install python3"), or name it: PYTHON=/path/to/python ./install.sh" >&2
  exit 1
}
is_by=venv
if [ "$venv_only" = 0 ]; then
  command -v pipx >/dev/null && is_by=pipx
  command -v uv >/dev/null && is_by=uv
fi
if [ "$is_by" != uv ]; then
  whole=$(find_python ensurepip) || { # Debian has it in a package of its own
    say "$python can't make environments: its module ensurepip is missing" >&2
    say "install that, such as with sudo apt install python3-venv, and run this again" >&2
    exit 1
  }
  python=$whole
fi
say "Python: $python"

wanted() { # PYTHON OF AN EARLIER INSTALLATION: this folder, with the extras that are installed there
  local extras
  extras=$("$1" -m knapper.extras 2>/dev/null || true)
  echo "$what${extras:+[$extras]}"
}

home=$HOME/.local/opt/knapper bin=$HOME/.local/bin man=$HOME/.local/share/man/man1
busy="it fetches some 60 packages, which takes a minute or two"
if [ "$is_by" = uv ]; then
  say "installing by uv: $busy"
  run uv tool install --force --python "$python" "$(wanted "$(uv tool dir 2>/dev/null)/knapper/bin/python")" || failed
  knap=$(uv tool dir --bin 2>/dev/null || echo "$bin")/knap
elif [ "$is_by" = pipx ]; then
  say "installing by pipx: $busy"
  run pipx install --force --python "$python" "$(wanted "$(pipx environment --value PIPX_LOCAL_VENVS 2>/dev/null)/knapper/bin/python")" || failed
  knap=$(pipx environment --value PIPX_BIN_DIR 2>/dev/null || echo "$bin")/knap
else
  wanted=$("$python" -c 'import sys; print(*sys.version_info[:2])')
  if [ -x "$home/bin/python" ] && [ "$("$home/bin/python" -c 'import sys; print(*sys.version_info[:2])')" != "$wanted" ]; then
    say "making $home anew: it has another Python"
    run rm -rf "$home"
  fi
  if [ -x "$home/bin/python" ] && ! "$home/bin/python" -c 'import pip' 2>/dev/null; then
    say "making $home anew: it was left unfinished"
    run rm -rf "$home"
  fi
  say "installing into $home: $busy"
  [ -x "$home/bin/python" ] || run "$python" -m venv "$home"
  run "$home/bin/python" -m pip install --quiet --upgrade "$what" || failed
  run mkdir -p "$bin"
  run ln -sf "$home/bin/knap" "$bin/knap"
  run mkdir -p "$man"
  run find "$home/share/man/man1" -name 'knap*.1' -exec ln -sf {} "$man" ';'
  knap=$bin/knap
fi

say "the command: $knap; ./uninstall.sh takes it away again"
case ":$PATH:" in
  *":$(dirname "$knap"):"*) ;;
  *) say "put $(dirname "$knap") on your PATH, to call it as knap" ;;
esac
if [ ! -t 0 ] && [ -r /dev/tty ] && (: </dev/tty) 2>/dev/null; then
  exec </dev/tty # so that questions are asked even if this script came through a pipe
fi
cd "$here" # where a relative --vault begins
run "$knap" setup ${rest[@]+"${rest[@]}"}
