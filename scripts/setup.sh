#!/usr/bin/env bash
# Installs the programs that `make demo`, `make test` or `make test-full` needs on a
# Debian machine that has Go and, for containers, a Docker engine. It prints the packages with the
# reason for each, and does nothing if nothing is missing.
#
#   setup.sh demo|test|full
set -euo pipefail

say() { printf 'setup: %s\n' "$*" >&2; }

missing=()
# need COMMAND PACKAGE REASON: adds PACKAGE to missing if there is no COMMAND.
need() {
  command -v "$1" >/dev/null && return
  say "$2 is missing: $3"
  missing+=("$2")
}

case ${1:-} in
demo | test | full) ;;
*)
  echo "usage: $0 demo|test|full" >&2
  exit 2
  ;;
esac

if ! command -v go >/dev/null; then
  say "Go is missing; install 1.26 or newer from https://go.dev/dl and put it on the PATH"
  exit 1
fi
need git git "repositories are made and compared with it"
need bash bash "every command of the agent is run by it"
need python3 python3 "tests run programs in it, and so does the demo without a container engine"
if [[ $1 != demo ]]; then
  need bwrap bubblewrap "sandboxes without a container engine are made with it"
fi
if [[ $1 == full ]]; then
  need tmux tmux "tests run the tour of docs/tour.md on real terminals"
  need chromium chromium "the pages of mini view are tested in it" # its packages bring a font
  need gcc gcc "the race detector needs a C compiler"
  if command -v gcc >/dev/null && ! echo '#include <stdlib.h>' | gcc -E - >/dev/null 2>&1; then
    say "libc6-dev is missing: the race detector needs the C library's headers"
    missing+=(libc6-dev)
  fi
  [[ " ${missing[*]-} " != *" gcc "* ]] || missing+=(libc6-dev)
  # The tests of podman use images of the engine.
  if command -v docker >/dev/null; then
    need podman podman "the sandboxes are tried with it too"
    need runc runc "podman starts containers with it"
    need conmon conmon "podman watches containers with it"
  fi
fi
((${#missing[@]})) || exit 0

if ! command -v apt-get >/dev/null; then
  say "this is no Debian; install these, then start again: ${missing[*]}"
  exit 1
fi
as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    say "installing needs root; type: apt-get install ${missing[*]}"
    exit 1
  fi
  as_root=(sudo)
fi
say "installing with apt-get: ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
