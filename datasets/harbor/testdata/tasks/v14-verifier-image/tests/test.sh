#!/bin/bash
[ "$(cat /app/data/a 2>/dev/null)" = hello ] && [ ! -e /app/data/b.tmp ] && [ "$(cat /logs/artifacts/state)" = changed ] && [ -e /judge ] && r=1
echo "{\"reward\": ${r:-0}}" > /logs/verifier/reward.json
