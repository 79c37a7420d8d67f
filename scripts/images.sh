#!/usr/bin/env bash
# Makes the images of the demo, mini-demo-<name>:latest, on top of
# mini-base:latest. Each is built again only when what goes into it has
# changed; when nothing has, this takes a second or two.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly demo=datasets/demo
readonly base=mini-base:latest

say() { printf 'images: %s\n' "$*" >&2; }

# ingredients is a hash of everything an image is made of.
ingredients() {
  {
    docker image inspect --format '{{.Id}}' "$base"
    cat "$0" "$demo/build.sh"
    find "$demo/instances/$1" -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
  } | sha256sum | cut -c1-32
}

dockerfile() {
  cat <<EOF
FROM $base
COPY build.sh /tmp/demo/build.sh
COPY instances/$1 /tmp/demo/instance
RUN bash /tmp/demo/build.sh /tmp/demo/instance /testbed && chmod -R a+rwX /testbed && rm -rf /tmp/demo
WORKDIR /testbed
EOF
}

build() {
  local id=$1 name image want log
  name=${id#*__}
  image=mini-demo-${name%-*}:latest
  want=$(ingredients "$id")
  if [[ $(docker image inspect --format '{{index .Config.Labels "mini.ingredients"}}' "$image" 2>/dev/null) == "$want" ]]; then
    return
  fi
  say "building $image"
  if ! log=$(dockerfile "$id" | docker build --quiet --network none --tag "$image" \
    --label "mini.ingredients=$want" --file - "$demo" 2>&1); then
    printf '%s\n' "$log" >&2
    say "$image could not be built; the lines above say why"
    return 1
  fi
}

scripts/base-image.sh
for folder in "$demo"/instances/*/; do
  build "$(basename "$folder")"
done
