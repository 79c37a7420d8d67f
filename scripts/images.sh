#!/usr/bin/env bash
# Makes the images of the demo set, mini-demo-*:latest, and mini-base:latest
# under them. Each carries a hash of what it was made from, so that only what
# changed is made again; with nothing to do it takes well under a second.
set -euo pipefail

cd "$(dirname "$0")/.."
readonly demo=datasets/demo

say() { printf 'images: %s\n' "$*" >&2; }

# sum prints the hash of everything that goes into the image of an instance.
sum() {
  {
    docker image inspect --format '{{.Id}}' mini-base:latest
    (cd "$demo" && find Dockerfile build.sh "instances/$1" -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum)
  } | sha256sum | cut -c1-16
}

# inspect prints a field of an image, nothing where there is no such image.
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
  # What the tag pointed at before is of no use to anybody. Containers that
  # still run on it keep it.
  if [[ -n $old && $old != "$(inspect "$image" '{{.Id}}')" ]]; then
    docker image rm "$old" >/dev/null 2>&1 || true
  fi
}

main() {
  local folder id image want making=() failed=0
  scripts/base-image.sh
  for folder in "$demo"/instances/*/; do
    id=$(basename "$folder")
    image=${id#*__} # minidemo__ledger-17: mini-demo-ledger
    image=mini-demo-${image%-*}:latest
    want=$(sum "$id")
    if [[ $(inspect "$image" '{{index .Config.Labels "mini.recipe"}}') != "$want" ]]; then
      make_image "$id" "$image" "$want" & # most of a build is waiting for the engine
      making+=($!)
    fi
  done
  for id in "${making[@]}"; do
    wait "$id" || failed=1
  done
  return "$failed"
}

main
