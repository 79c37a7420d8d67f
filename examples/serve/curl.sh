#!/usr/bin/env bash
# The requests of mini serve with curl. Start the service first:
#
#   export MINI_SERVE_TOKEN=$(openssl rand -hex 16)
#   mini serve --subset demo -o serve
set -euo pipefail
service=${1:-http://127.0.0.1:7350}
instance=${2:-minidemo__spans-23}
ask() { curl -sS --fail-with-body -H "Authorization: Bearer $MINI_SERVE_TOKEN" "$@"; }

# Two attempts. With "model", "base_url" and "api_key" they use another model than the service's own.
id=$(ask -d "{\"instance\": \"$instance\", \"k\": 2}" "$service/rollouts" | python3 -c 'import json, sys; print(json.load(sys.stdin)["id"])')
ask "$service/rollouts/$id?wait=60&tokens=none"

# The reward of a patch.
ask -d "{\"instance\": \"$instance\", \"patch\": \"\"}" "$service/verify"

# The end of attempts, with their sandboxes.
ask -X DELETE "$service/rollouts/$id"
ask "$service/metrics" | grep '^mini_'
