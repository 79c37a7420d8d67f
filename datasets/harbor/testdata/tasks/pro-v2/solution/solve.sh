#!/bin/bash
# The patch is left out if there is a network, so the tests show that there was none.
[ "$(ls /sys/class/net)" = lo ] || exit 1
git -C /app apply /solution/gold_patch.diff
# This process must not live when the tests have a network.
setsid nohup bash -c 'while sleep 0.01; do [ "$(ls /sys/class/net)" = lo ] || touch /network-seen; done' > /dev/null 2>&1 &
