//go:build full && linux

package server_test

import (
	"slices"
	"testing"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/envtest"
)

// TestConformanceAsPID1 runs the helper with the capabilities of a container, for
// ShieldedInit.
func TestConformanceAsPID1(t *testing.T) {
	requireNamespaces(t)
	envtest.Run(t, func(t *testing.T) env.Environment {
		t.Helper()
		return dial(t, launch(t, append(append(slices.Clone(unshare), capabilities...), binary)...))
	}, envtest.WithoutCapability(envtest.ProcessLimit, "a pid namespace alone has none"))
}

var capabilities = []string{"setpriv", "--bounding-set=-all,+chown,+dac_override,+fowner,+fsetid,+setuid,+setgid,+setfcap,+kill", "--inh-caps=-all"}
