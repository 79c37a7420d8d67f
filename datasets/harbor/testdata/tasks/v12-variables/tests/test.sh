#!/bin/bash
[ "$(cat /app/out.txt 2>/dev/null)" = "$WANTED!" ] && [ -z "$MARK" ] && [ "$LITERAL" = 'a ${MINI_HARBOR_PLACE} b' ] && r=1
echo "${r:-0}" > /logs/verifier/reward.txt
