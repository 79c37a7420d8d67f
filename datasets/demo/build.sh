#!/usr/bin/env bash
# build.sh INSTANCE DEST creates the repository of one demo instance in DEST, an
# empty or missing folder. INSTANCE is the folder of the instance:
#
#   base/        the files of the first commit
#   history/     the commits up to the base commit, as mailed patches
#   fix.patch    the maintainers' next commit: the branch "next", and a tag
#   setup.patch  the changes of the image's set-up: the commit "SWE-bench" on top
#   tags         one line per tag: "first", "base" or "fix", and the tag of that commit
#
# The repository is the same everywhere, including commit hashes: names and dates
# are fixed, and the script ignores the user's git configuration. Like the images
# of SWE-bench, the repository contains the fix, which a runner must remove.
set -euo pipefail

main() {
  local from to at tag
  from=$(cd "$1" && pwd)
  mkdir -p "$2"
  to=$(cd "$2" && pwd)
  if [[ -n $(ls -A "$to") ]]; then
    echo "build.sh: $to is not empty" >&2
    return 1
  fi
  isolate
  cp -R "$from/base/." "$to"
  cd "$to"

  git init --quiet --object-format=sha1 --template=
  git symbolic-ref HEAD refs/heads/main
  # Set these here, so that the repository does not depend on the machine's settings.
  git config core.autocrlf false
  git config core.fileMode true
  git config user.name SWE-bench
  git config user.email setup@swebench.config

  git add --all
  GIT_AUTHOR_NAME='Mini Demo' GIT_AUTHOR_EMAIL=demo@minidemo.example \
    GIT_AUTHOR_DATE=2023-01-09T09:00:00Z GIT_COMMITTER_DATE=2023-01-09T09:00:00Z \
    git commit --quiet --message 'Import what there is'
  git branch first
  apply "$from"/history/*.patch
  git branch base
  git checkout --quiet -b next
  apply "$from/fix.patch"
  while read -r at tag; do
    case $at in
      first | base) git tag "$tag" "$at" ;;
      fix) git tag "$tag" next ;;
    esac
  done <"$from/tags"
  git checkout --quiet main
  git reset --quiet --hard base
  git branch --quiet -D first base
  apply "$from/setup.patch"
}

# isolate removes all variables and configuration files of the caller that affect
# git, and sets the committer of all commits.
isolate() {
  local name
  while read -r name; do unset "$name"; done < <(compgen -v GIT_)
  export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_ATTR_NOSYSTEM=1 HOME=/nonexistent LC_ALL=C
  export GIT_COMMITTER_NAME='Mini Demo' GIT_COMMITTER_EMAIL=demo@minidemo.example
  unset XDG_CONFIG_HOME
  umask 022
}

apply() {
  git am --quiet --committer-date-is-author-date --no-gpg-sign "$@"
}

main "$@"
