#!/bin/bash
id -u > /app/out.txt
