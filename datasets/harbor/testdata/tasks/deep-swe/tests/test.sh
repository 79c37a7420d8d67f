#!/bin/bash
cd /app
git apply /logs/artifacts/model.patch
. ./numbers.sh
if [ "$(double 21)" = 42 ] && [ -e data.bin ] && [ "$(ls /sys/class/net)" = lo ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
