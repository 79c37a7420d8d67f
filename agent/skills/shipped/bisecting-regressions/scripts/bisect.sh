#!/usr/bin/env bash
# Finds the first commit at which a command fails, in a work tree of its own.
#   bisect.sh [--good REV] [--bad REV] [--timeout SECONDS] -- COMMAND [ARGS...]
# COMMAND runs at the top of the tree: 0 is good, 125 is "cannot say", other
# codes are bad. Exit: 0 found, 1 not found, 2 bad usage.
set -u

usage() { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }
fail() { echo "bisect: $*" >&2; exit 1; }

good='' bad=HEAD limit=120
while [ $# -gt 0 ]; do
  case $1 in
    --good|--bad|--timeout)
      [ $# -gt 1 ] || usage
      case $1 in --good) good=$2 ;; --bad) bad=$2 ;; *) limit=$2 ;; esac
      shift 2 ;;
    --) shift; break ;;
    *) usage ;;
  esac
done
[ $# -gt 0 ] || usage

# What the caller's commands say of another repository is not for us.
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
git rev-parse --git-dir >/dev/null 2>&1 || fail "this is no git repository: $PWD"
bad=$(git rev-parse --verify --quiet "$bad^{commit}") || fail "--bad is no commit"
if [ -n "$good" ]; then
  good=$(git rev-parse --verify --quiet "$good^{commit}") || fail "--good is no commit"
  git merge-base --is-ancestor "$good" "$bad" || fail "the good commit is no ancestor of the bad one"
fi

base=$(mktemp -d "${TMPDIR:-/tmp}/bisect-XXXXXX") || fail "no temporary folder"
tree=$base/tree
repo=$(git rev-parse --path-format=absolute --git-common-dir 2>/dev/null) || repo=$(cd "$(git rev-parse --git-dir)" && pwd)
cleanup() {
  cd / && git --git-dir="$repo" worktree remove --force "$tree" >/dev/null 2>&1
  rm -rf "$base"
  git --git-dir="$repo" worktree prune >/dev/null 2>&1
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP
git worktree add --quiet --detach "$tree" "$bad" >"$base/log" 2>&1 || fail "no work tree: $(tail -n 1 "$base/log")"
cd "$tree" || fail "no work tree"

guard=()
command -v timeout >/dev/null 2>&1 && guard=(timeout -k 5 "$limit")
count=0
# run REV COMMAND...: the command's exit code, at that commit.
run() {
  local rev=$1; shift
  git checkout --quiet --force --detach "$rev" || fail "cannot check out $rev"
  git clean -ffdxq
  count=$((count + 1))
  ${guard[@]+"${guard[@]}"} "$@" >"$base/out" 2>&1 </dev/null
  code=$?
  [ "$code" -eq 126 ] || [ "$code" -eq 127 ] && fail "the command cannot be run (exit $code): $(tail -n 1 "$base/out")"
  return "$code"
}
short() { git log -1 --format='%h %s' "$1"; }

run "$bad" "$@"; code=$?
[ "$code" -eq 0 ] && fail "the command passes at the bad commit ($(short "$bad")); it has to fail there"
[ "$code" -eq 125 ] && fail "the command says 125 (cannot say) at the bad commit ($(short "$bad")): $(tail -n 1 "$base/out")"
echo "fails at  $(short "$bad") (exit $code)"

if [ -n "$good" ]; then
  run "$good" "$@"; code=$?
  [ "$code" -eq 0 ] || fail "the command does not pass at the good commit ($(short "$good"), exit $code): $(tail -n 1 "$base/out")"
else
  # Twice as far back each time, and the oldest commit last.
  back=1 oldest=$(git rev-list --first-parent "$bad" | tail -n 1)
  while :; do
    rev=$(git rev-parse --verify --quiet "$bad~$back") || rev=$oldest
    [ "$rev" = "$bad" ] && fail "there is only one commit"
    run "$rev" "$@"; code=$?
    [ "$code" -eq 0 ] && { good=$rev; break; }
    [ "$rev" = "$oldest" ] && fail "no commit passes, back to the oldest ($(short "$oldest"), exit $code): $(tail -n 1 "$base/out")"
    back=$((back * 2))
  done
fi
echo "passes at $(short "$good")"

# git bisect itself keeps its state in the work tree's own folder.
git bisect start "$bad" "$good" >"$base/log" 2>&1 || fail "git bisect: $(tail -n 1 "$base/log")"
while :; do
  grep -q 'is the first bad commit' "$base/log" && break
  if grep -q "only 'skip'ped commits left" "$base/log"; then
    echo "the first bad commit is one of these, which cannot be told apart (exit 125):"
    grep -E '^[0-9a-f]{40}$' "$base/log" | while read -r c; do echo "  $(short "$c")"; done
    exit 1
  fi
  rev=$(git rev-parse HEAD)
  run "$rev" "$@"; code=$?
  case $code in 0) word=good ;; 125) word=skip ;; *) word=bad ;; esac
  echo "  $word  $(short "$rev")"
  git bisect "$word" >"$base/log" 2>&1 || grep -qE "first bad commit|only 'skip'ped" "$base/log" || fail "git bisect: $(tail -n 1 "$base/log")"
done
first=$(grep 'is the first bad commit' "$base/log" | cut -d' ' -f1)
git bisect reset >/dev/null 2>&1
echo
echo "first bad commit, after $count runs:"
git show --no-color --stat --format='commit %H%nauthor %an, %ad%n%n    %s%n' "$first"
