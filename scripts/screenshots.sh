#!/usr/bin/env bash
# Takes pictures of the pages of mini view and writes them to docs/images: of two runs
# of the demo that it makes, or of the given runs. It needs bin/mini, Chromium and, for
# the demo, what make demo needs.
#
#   screenshots.sh [RUN RUN...]
set -euo pipefail
cd "$(dirname "$0")/.."
out=docs/images

tmp=$(mktemp -d)
server=
trap '[[ -z $server ]] || { kill "$server" && wait "$server"; } 2>/dev/null || true; rm -rf "$tmp"' EXIT

if (($# == 0)); then
  set -- "$tmp/runs/wrong" "$tmp/runs/correct"
  bin/mini bench --subset demo -w 2 -k 2 --eval --replies wrong -o "$1" >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
  bin/mini bench --subset demo -w 2 -k 2 --eval -o "$2" >"$tmp/log" 2>&1 || { cat "$tmp/log" >&2; exit 1; }
fi

bin/mini view "$@" --port 0 >"$tmp/view" 2>&1 &
server=$!
url=
for _ in {1..100}; do
  url=$(grep -oE 'http://127\.0\.0\.1:[0-9]+/\?token=[A-Z0-9]+' "$tmp/view" | sed -n 1p) && [[ -n $url ]] && break
  kill -0 "$server" 2>/dev/null || break
  sleep 0.1
done
if [[ -z $url ]]; then
  echo "screenshots: mini view printed no address:" >&2
  cat "$tmp/view" >&2
  exit 1
fi

MINI_BROWSER=required MINI_VIEW_URL=$url go test -count=1 -tags full -run TestPictures -artifacts -outputdir "$tmp" \
  ./cmd/mini/internal/web/browsertest
mkdir -p "$out"
find "$tmp" -name '*.png' -exec cp {} "$out" \;
chmod 644 "$out"/*.png
du -ch "$out"/*.png
