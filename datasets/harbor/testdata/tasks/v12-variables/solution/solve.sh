#!/bin/bash
[ "$DEBIAN_FRONTEND" = noninteractive ] && echo "$GREETING $PLACE$MARK" > /app/out.txt
