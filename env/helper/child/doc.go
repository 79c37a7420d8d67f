// Package child starts a helper as a child of this program and talks to it over
// pipes: directly on the host, or behind a program that builds a sandbox first
// and then becomes or starts the helper (bubblewrap).
//
// Nothing outlives its owner. The helper holds the reading end of a pipe whose
// other end this program alone has: however this program ends, kill -9
// included, the helper sees the end of its input, kills everything it has
// started and exits. When it is the helper that is killed, its orphans become
// this program's (see process.Ward) and are killed here.
//
// The helper's file is held in memory and never on a disk. All of this is for
// Linux; elsewhere Load says so.
//
//	program, err := child.Load(binary, hash)
//	defer program.Close()
//	box, err := child.Start(ctx, child.Config{Name: "work in " + dir, Program: program, Setup: helper.Setup{Dir: dir}})
//	defer box.Close(ctx)
package child
