#!/bin/bash
cp /tmp/ready /app/out.txt
