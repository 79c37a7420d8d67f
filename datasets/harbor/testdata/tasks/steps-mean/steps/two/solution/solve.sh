#!/bin/bash
cat hint > two.txt
