// Package envtest is the conformance suite of env.Environment: what every
// sandbox must do, tried with real commands. Each implementation's tests call
// Run:
//
//	func TestConformance(t *testing.T) {
//		envtest.Run(t, func(t *testing.T) env.Environment { ... })
//	}
//
// The sandbox needs bash, coreutils and setsid (util-linux), and a writable
// /tmp. Nothing here could harm a host that is its own sandbox: no fork bomb, no
// signal to anything but what a case has started.
package envtest
