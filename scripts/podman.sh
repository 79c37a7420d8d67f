#!/usr/bin/env bash
# Installs Debian's podman, and the programs with which the tests run it: conmon,
# and runc, which works with every layout of control groups (crun rejects one).
# The script starts no service: each test starts its own, with its own image
# store. It does nothing if nothing is missing.
set -euo pipefail

missing=()
for program in podman runc conmon; do
  command -v "$program" >/dev/null || missing+=("$program")
done
((${#missing[@]})) || exit 0

if ! command -v apt-get >/dev/null; then
  echo "podman: this is no Debian; install these for the tests with podman: ${missing[*]}" >&2
  exit 1
fi
as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "podman: installing needs root; type: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "podman: installing with apt-get: ${missing[*]}" >&2
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
