#!/bin/bash
set -e
cd /app
git apply /tests/test_patch.patch
bash /tests/run_script.sh > /tmp/output.txt 2>&1 || true
python3 /tests/parser.py /tmp/output.txt > /logs/verifier/reward.txt
cat /tmp/output.txt
ls /sys/class/net
# The tests have a network, and no process of the agent has seen it.
if [ "$(ls /sys/class/net)" = lo ] || [ -e /network-seen ]; then echo 0 > /logs/verifier/reward.txt; fi
