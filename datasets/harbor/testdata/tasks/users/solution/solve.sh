#!/bin/bash
echo "$(id -un) $HOME" > /app/out.txt
