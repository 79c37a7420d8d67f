#!/bin/bash
mkdir data
echo hello > data/a
touch data/b.tmp
ln -s /tests/test.sh data/link
echo changed > state
