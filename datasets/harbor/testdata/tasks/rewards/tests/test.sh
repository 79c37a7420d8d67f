#!/bin/bash
mkdir -p /logs/verifier
[ "$(cat /app/out.txt 2>/dev/null)" = hello ] && [ ! -e /app/secret ] && [ -e /app/kept ] && r=1
echo "{\"reward\": ${r:-0}, \"speed\": 0.5}" > /logs/verifier/reward.json
echo '{"results": {"tool": {"name": "t"}, "summary": {"tests": 1}}}' > /logs/verifier/ctrf.json
echo 0 > /logs/verifier/reward.txt
