#!/usr/bin/env bash
# Finds the first commit at which a command fails, in a work tree of its own.
#   bisect.sh [--good REV] [--bad REV] [--timeout SECONDS] -- COMMAND [ARGS...]
# COMMAND runs at the top of the tree: 0 is good, 125 is "cannot say", other
# codes are bad. Exit: 0 found, 1 not found, 2 bad usage.
set -u
usage() { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }
fail() { echo "bisect: $*" >&2; exit 1; }
short() { git log -1 --format='%h %s' "$1"; }

good='' bad=HEAD limit=120
while [ $# -gt 1 ] && [ "$1" != -- ]; do
  case $1 in --good) good=$2 ;; --bad) bad=$2 ;; --timeout) limit=$2 ;; *) usage ;; esac
  shift 2
done
[ "${1-}" = -- ] && [ $# -gt 1 ] || usage
shift

unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE # the caller's may be of another repository
repo=$(git rev-parse --path-format=absolute --git-common-dir 2>/dev/null) || fail "this is no git repository: $PWD"
bad=$(git rev-parse --verify --quiet "$bad^{commit}") || fail "--bad is no commit"
[ -z "$good" ] || good=$(git rev-parse --verify --quiet "$good^{commit}") || fail "--good is no commit"
base=$(mktemp -d "${TMPDIR:-/tmp}/bisect-XXXXXX") || fail "no temporary folder"
trap 'cd /; git --git-dir="$repo" worktree remove --force "$base/tree" >/dev/null 2>&1; rm -rf "$base"' EXIT
trap 'exit 1' INT TERM HUP
git worktree add --quiet --detach "$base/tree" "$bad" >"$base/log" 2>&1 && cd "$base/tree" || fail "no work tree: $(cat "$base/log")"

# check REV COMMAND...: sets code to the exit code of the command at that commit.
check() {
  git checkout --quiet --force "$1" 2>"$base/log" && git clean -ffdxq || fail "cannot check out $1: $(cat "$base/log")"
  timeout -k 5 "$limit" "${@:2}" >"$base/out" 2>&1 </dev/null; code=$?
  [ "$code" -ne 126 ] && [ "$code" -ne 127 ] || fail "the command cannot be run (exit $code): $(tail -n 1 "$base/out")"
}
check "$bad" "$@"
[ "$code" -ne 0 ] && [ "$code" -ne 125 ] || fail "it does not fail at the bad commit ($(short "$bad"), exit $code)"
oldest=$(git rev-list --first-parent "$bad" | tail -n 1)
for back in ${good:-1 2 4 8 16 32 64 128 256 512 1024 2048 4096 oldest}; do # twice as far back each time
  [ -n "$good" ] && rev=$good || rev=$(git rev-parse --verify --quiet "$bad~$back") || rev=$oldest
  check "$rev" "$@"
  [ "$code" -eq 0 ] && break
  [ -z "$good" ] && [ "$rev" != "$oldest" ] || fail "it does not pass at $(short "$rev") (exit $code): $(tail -n 1 "$base/out")"
done
git bisect start "$bad" "$rev" >"$base/log" 2>&1 || fail "git bisect: $(tail -n 1 "$base/log")"
git bisect run bash -c 'git clean -ffdxq; exec timeout -k 5 "$@" </dev/null' bisect "$limit" "$@" >"$base/log" 2>&1
first=$(sed -n 's/^\([0-9a-f]\{40\}\) is the first bad commit.*/\1/p' "$base/log")
git bisect log | grep -E '^# (good|bad|skip)'
git bisect reset >/dev/null 2>&1
[ -n "$first" ] || fail "the first bad commit is one of those that cannot be judged (exit 125)"
git show --no-color --stat --format='first bad commit%ncommit %H%nauthor %an, %ad%n%n    %s%n' "$first"
