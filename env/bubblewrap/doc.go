// Package bubblewrap runs commands in a sandbox made by bwrap, for machines without a
// container engine: the host's programs in new Linux namespaces, with mini's helper as
// PID 1. It needs no privileges and no images, and starts in about 10 ms.
//
// Commands see one writable directory and, read-only, the host's programs and those
// files in /etc that everyone can read. Nothing else of the host is visible, apart from
// Config.Mounts: no home, no /var, no /run with its sockets, no /sys. Temporary directories
// and the home are empty tmpfs mounts of limited size. The sandbox has its own PID,
// UTS and IPC namespaces and, unless Config.Network is NetworkHost, its own network.
// Commands have no capabilities, gain none from set-uid programs, and cannot create
// user namespaces. Of the host's environment variables only PATH, LANG and the like
// are passed on.
//
// A Sandbox implements env.Environment fully. Compared to a container it has these
// limits:
//
//   - Memory, processes and CPU time are not limited: a command can use up the whole machine.
//     Info has a warning.
//   - The only user is the one that mini runs as. Commands cannot switch users or chown files.
//   - System calls are not filtered: the kernel is exposed as to any program of this user.
//   - The versions of programs are those of the host. Programs in the home directory are missing
//     unless Config.Mounts includes them.
//
// All processes are killed when mini exits (see package child); bwrap's
// --die-with-parent ensures the same.
//
//	host, err := bubblewrap.Open(ctx, program)
//	sandbox, err := host.Start(ctx, bubblewrap.Config{Dir: "/tmp/work"})
//	defer sandbox.Close(ctx)
package bubblewrap
