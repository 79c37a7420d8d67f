//go:build kubernetes

package kubetest_test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The pings of a WebSocket end up to five seconds after it.
		goleak.IgnoreTopFunction("k8s.io/client-go/tools/remotecommand.(*heartbeat).start"),
		// A SPDY connection reports for a second that it was closed before.
		goleak.IgnoreTopFunction("github.com/moby/spdystream.(*Connection).shutdown"))
}
