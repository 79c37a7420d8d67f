#!/usr/bin/env bash
# Puts Debian's docker-registry into bin/, for the tests that pull images. The
# package is unpacked, not installed: nothing listens afterwards, and root is
# not needed. Tests start the program themselves, on the loopback.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'registry: %s\n' "$*" >&2; }

if command -v docker-registry >/dev/null || [[ -x bin/docker-registry ]]; then
	exit 0
fi
if ! command -v apt-get >/dev/null; then
	say "this is no Debian; put a docker-registry (distribution 2.8) on the PATH, or its tests are skipped"
	exit 0
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
chmod 755 "$tmp"
say "fetching Debian's docker-registry for the tests"
download() { (cd "$tmp" && apt-get download -q docker-registry >/dev/null 2>&1); }
# A new machine has no lists of packages; they are root's to fetch.
if ! download && ! { ((EUID == 0)) && apt-get update -qq && download; }; then
	say "the package could not be fetched (apt-get update?); its tests are skipped"
	exit 0
fi
dpkg -x "$tmp"/docker-registry_*.deb "$tmp/unpacked"
mkdir -p bin
install -m 755 "$tmp/unpacked/usr/bin/docker-registry" bin/docker-registry
