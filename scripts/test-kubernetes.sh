#!/usr/bin/env bash
# Runs the tests of env/kubernetes on a real cluster: that of KUBECONFIG, or a single
# node on this machine if ../shared/tools/kubernetes has the scripts for one. The user's
# cluster must be able to pull MINI_TEST_IMAGE, an image with bash and git.
set -euo pipefail
cd "$(dirname "$0")/.."

node=../shared/tools/kubernetes
if [ -z "${KUBECONFIG:-}" ]; then
	if ! [ -x $node/up.sh ]; then
		echo "set KUBECONFIG to a cluster for tests, and MINI_TEST_IMAGE to an image that it can pull" >&2
		exit 2
	fi
	KUBECONFIG=$($node/up.sh)
	export KUBECONFIG
	$node/load.sh mini-base:latest >/dev/null
	state=${K8S_TEST_STATE:-/var/tmp/k8s-test}
	MINI_TEST_KUBERNETES_NODE=$(pgrep -P "$(cat "$state/pid")")
	export MINI_TEST_KUBERNETES_NODE
fi
go test -tags kubernetes,kubernetes_live -count=1 -timeout 30m -run TestLive "$@" ./env/kubernetes
