#!/usr/bin/env bash
# Builds the images of the demo set, mini-demo-*:latest, and their base image,
# mini-base:latest. A label of each image has a hash of its sources, so that the
# script rebuilds only images whose sources changed. If there is nothing to do, it
# takes much less than a second.
set -euo pipefail

cd "$(dirname "$0")/.."
readonly demo=datasets/demo

say() { printf 'images: %s\n' "$*" >&2; }

# sum prints the hash of all sources of the image of an instance.
sum() {
  {
    docker image inspect --format '{{.Id}}' mini-base:latest
    (cd "$demo" && find Dockerfile build.sh "instances/$1" -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum)
  } | sha256sum | cut -c1-16
}

# inspect prints a field of an image, or nothing if the image does not exist.
inspect() { docker image inspect --format "$2" "$1" 2>/dev/null || true; }

make_image() {
  local id=$1 image=$2 want=$3 old log
  old=$(inspect "$image" '{{.Id}}')
  say "making $image"
  if ! log=$(docker build --network none --force-rm --build-arg "INSTANCE=$id" --label "mini.recipe=$want" \
    --tag "$image" "$demo" 2>&1); then
    printf '%s\n' "$log" | tail -n 20 >&2
    say "docker build failed for $image; the lines above are the end of what it said"
    return 1
  fi
  # Remove the image that had the tag before. The engine keeps it while containers
  # use it.
  if [[ -n $old && $old != "$(inspect "$image" '{{.Id}}')" ]]; then
    docker image rm "$old" >/dev/null 2>&1 || true
  fi
}

main() {
  local folder id image want making=() failed=0
  scripts/base-image.sh
  for folder in "$demo"/instances/*/; do
    id=$(basename "$folder")
    image=${id#*__} # minidemo__ledger-17 becomes mini-demo-ledger
    image=mini-demo-${image%-*}:latest
    want=$(sum "$id")
    if [[ $(inspect "$image" '{{index .Config.Labels "mini.recipe"}}') != "$want" ]]; then
      make_image "$id" "$image" "$want" & # in parallel: a build mostly waits for the engine
      making+=($!)
    fi
  done
  for id in "${making[@]}"; do
    wait "$id" || failed=1
  done
  return "$failed"
}

main
