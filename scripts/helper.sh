#!/bin/sh
# Builds the program that runs inside sandboxes, for every architecture that
# mini embeds, and compresses it. The build is reproducible, because mini
# identifies the helper by the hash of the uncompressed program.
set -eu
cd "$(dirname "$0")/.."
for arch in ${HELPER_ARCHS:-amd64 arm64}; do
	CGO_ENABLED=0 GOOS=linux GOARCH=$arch GOAMD64=v1 GOFLAGS=-mod=readonly \
		go build -trimpath -buildvcs=false -ldflags '-s -w -buildid=' \
		-o "env/helper/binaries/mini-helper-linux-$arch" ./cmd/mini-helper
	(
		cd env/helper/binaries
		sha256sum "mini-helper-linux-$arch" >"mini-helper-linux-$arch.sha256"
		gzip -9nf "mini-helper-linux-$arch"
	)
done
