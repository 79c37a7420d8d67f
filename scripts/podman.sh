#!/usr/bin/env bash
# Installs Debian's podman and what its tests run it with: runc, which works
# with every layout of control groups (crun refuses one), and conmon. It starts
# nothing; tests run a service of their own with a store of their own. With
# everything there it does nothing.
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
