#!/bin/bash
if [ "$(cat /app/out.txt 2>/dev/null)" = 1234 ] && [ "$(id -u)" = 0 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
