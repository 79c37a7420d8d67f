#!/bin/bash
echo hello > /app/out.txt
sleep 1000
