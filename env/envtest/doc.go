// Package envtest is the conformance suite of env.Environment: what every
// sandbox must do, tried with real commands. Each implementation's tests call
// Run:
//
//	func TestConformance(t *testing.T) {
//		envtest.Run(t, func(t *testing.T) env.Environment { ... },
//			envtest.Lacks(envtest.ProcessLimit, "bubblewrap cannot limit processes"),
//			envtest.Lacks(envtest.OtherUsers, "a bubblewrap sandbox has one user"),
//			envtest.WithMemory(func(t *testing.T) env.Environment { ... }))
//	}
//
// An environment that is not said to lack anything must pass all: a container of
// its own, root within, a bound on processes. One that cannot do something says so
// with Lacks, and why; its cases are skipped with that reason. A case that fails
// is never made to pass in another way. A sandbox reached through a helper over a
// pipe has FileTransfer, Shield (when the helper is PID 1 and commands lack
// SYS_PTRACE) and OwnProcesses (when it has a pid namespace and the helper is
// PID 1 there) for nothing. Bounds on processes and memory are the container
// engine's; WithMemory opens an environment with a small one.
//
// The sandbox needs bash, coreutils, setsid (util-linux) and a writable /tmp;
// setpriv for OtherUsers, python3 for one case of Shield. Where OwnProcesses
// lacks nothing here can harm a host that is its own sandbox: no fork bomb, no
// signal to anything but what a case has started. Groups run in parallel where
// the processes of sandboxes are apart.
//
// MINI_TEST_LONG=1 runs the cases about lost output in full: 10,000 commands
// instead of 1,000.
package envtest
