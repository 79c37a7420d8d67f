#!/bin/bash
limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || cat /sys/fs/cgroup/memory/memory.limit_in_bytes)
if [ "$(cat /app/out.txt 2>/dev/null)" = hello ] && [ "$limit" = 536870912 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
exit 3
