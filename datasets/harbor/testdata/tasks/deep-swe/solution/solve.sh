#!/bin/bash
cd /app
echo 'double() { echo $((2 * $1)); }' >> numbers.sh
printf 'a\0b' > data.bin
git add -A
git -c user.name=mini -c user.email=mini@example.com commit -q -m 'add double'
echo 'not committed' >> numbers.sh
