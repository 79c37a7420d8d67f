#!/bin/bash
bash /tests/check.sh two.txt second
