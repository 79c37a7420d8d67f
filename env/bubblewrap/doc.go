// Package bubblewrap is a sandbox for machines without a container engine: the
// host's own programs, in Linux namespaces that bwrap makes, with mini's helper
// as PID 1. It needs no rights and no images, and starts in a hundredth of a
// second.
//
// Commands see the host's programs and /etc for reading (what there is not open
// to everybody is hidden), one folder that they may change, and nothing else of
// the host's: no home, no /var, no /run with its sockets, no /sys. Temporary
// folders and the home are empty, in memory, and bounded. Processes, hostname,
// IPC and, unless Config.Network says otherwise, the network are the sandbox's
// own. No command has capabilities, gains any from a set-uid program, or can
// make further user namespaces. Variables of the host are left out but for PATH,
// LANG and the like.
//
// It keeps every promise of env.Environment. What it cannot do, and a container
// can:
//
//   - It bounds no memory, no processes and no processor time. A command can take
//     the whole machine; Info says so.
//   - There is one user, the one that mini runs as. Nobody else can be become,
//     and files cannot be given away.
//   - System calls are not filtered: the kernel is as reachable as for any
//     program of this user.
//   - The host's programs are there in the versions that it has, and programs
//     below the home are not there unless Config.Mounts names them.
//
// Everything dies with its owner, see package child; bwrap's --die-with-parent
// says so a second time.
//
//	host, err := bubblewrap.Open(ctx, program)
//	box, err := host.Start(ctx, bubblewrap.Config{Dir: "/tmp/work"})
//	defer box.Close(ctx)
package bubblewrap
