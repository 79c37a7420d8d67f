#!/bin/bash
# The file left-behind stays in the container of the agent.
if [ "$(cat /app/out.txt 2>/dev/null)" = hello ] && [ ! -e /app/left-behind ]; then echo 1.0; else echo 0.0; fi > /logs/verifier/reward.txt
