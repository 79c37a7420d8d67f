#!/usr/bin/env bash
# Says what make demo has left on this machine, and how to remove it.
set -euo pipefail
cd "$(dirname "$0")/.."

run=$(ls -td mini-runs/*/ | sed -n 1p)
run=${run%/}
echo
echo "The demo left bin/mini and the folder $run."
remove="rm -r $run"
if scripts/engine.sh 2>/dev/null; then
  echo "In the container engine it left the images mini-base, mini-demo-* and mini-prepared, and a volume with mini's helper."
  remove="bin/mini images prune; bin/mini clean --all; docker image rm mini-base \$(docker image ls -q 'mini-demo-*'); $remove"
fi
echo "To remove this: $remove"
