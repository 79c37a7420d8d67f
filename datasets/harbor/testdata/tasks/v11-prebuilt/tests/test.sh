#!/bin/bash
ip=$(ls /sys/class/net | grep -cv "^lo$")
if [ "$(cat /srv/out.txt 2>/dev/null)" = hello ] && [ "$ip" = 0 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
