#!/usr/bin/env bash
# Checks that a container engine answers. Otherwise it prints a note and exits with
# code 1.
set -euo pipefail

if ! command -v docker >/dev/null; then
	echo "There is no docker command on this machine; going on without containers." >&2
	exit 1
fi
if ! docker version --format '{{.Server.Version}}' >/dev/null 2>&1; then
	echo "No Docker engine answers; going on without containers. (Is it running, and may you use it? Try: docker version)" >&2
	exit 1
fi
