// Package child starts a helper as a child process of this program and talks to it
// over pipes: directly on the host, or through a wrapper that builds a sandbox first
// and then executes the helper (bubblewrap).
//
// No process outlives this program. The helper reads from a pipe whose write end only
// this program holds: when this program exits, even by kill -9, the helper sees the
// end of its input, kills all its processes and exits. If the helper is killed, this
// program adopts its orphans and kills them (see process.Child).
//
// The helper's binary is held in a memory file, or in an unnamed file on disk if the
// kernel does not permit executing memory files. Commands that may call tools need a
// named copy on disk (see Program.ToolDir). The package works on Linux only; on other
// systems Load returns an error.
//
//	program, err := child.Load(binary, hash)
//	defer program.Close()
//	sandbox, err := child.Start(ctx, child.Config{Name: "work in " + dir, Program: program, Setup: helper.Setup{Dir: dir}})
//	defer sandbox.Close(ctx)
package child
