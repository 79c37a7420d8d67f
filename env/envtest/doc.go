// Package envtest is the conformance test suite for env.Environment. It tests
// implementations with real commands. The tests of each implementation call Run:
//
//	func TestConformance(t *testing.T) {
//		envtest.Run(t, func(t *testing.T) env.Environment { ... },
//			envtest.WithoutCapability(envtest.ProcessLimit, "bubblewrap cannot limit processes"),
//			envtest.WithoutCapability(envtest.OtherUsers, "a bubblewrap sandbox has one user"),
//			envtest.WithMemory(func(t *testing.T) env.Environment { ... }))
//	}
//
// By default an environment must pass all tests except those of memory: it has its own
// PID namespace, commands run as root, and the number of processes is limited. If it
// lacks a capability, the option WithoutCapability declares that with a reason; the
// tests of this capability are skipped with this reason. A sandbox with a helper has
// FileTransfer; it has ShieldedInit if the helper is PID 1 and commands lack
// SYS_PTRACE, and OwnProcesses if the helper is PID 1 of a PID namespace. Limits of
// processes and memory are features of container engines; WithMemory opens an
// environment with a small memory limit.
//
// The sandbox needs bash, coreutils, setsid (util-linux) and a writable /tmp; also
// setpriv for OtherUsers, and python3 for one test of ShieldedInit. The tests of an
// environment that lacks OwnProcesses do not harm the host: they start no fork bombs
// and signal only their own processes. Most groups of tests run in parallel if the
// environment has OwnProcesses or the option SharedProcessTable is given.
//
// The build tag full adds groups that take longer: the largest sizes, each escape
// alone, and more kinds of fork bombs.
package envtest
