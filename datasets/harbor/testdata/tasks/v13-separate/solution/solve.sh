#!/bin/bash
touch /app/left-behind
echo hello > /app/out.txt
