#!/bin/bash
bash /tests/check.sh one.txt one
