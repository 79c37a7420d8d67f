// Package family ends programs of this machine with all that they started.
//
// A program has a process group of its own, in mini's own session (see
// env/process.Ward, which takes whatever leaves that for a command's), and a
// tag in its environment, by which those are found on Linux that have left the
// group. What has left the one and thrown away the other is not found.
//
//	f := family.New(cmd, environ)
//	cmd.Cancel = f.Kill
//	err := f.Run()
//
// The group is killed before its leader is reaped: after that the number of the
// group may be that of other processes.
//
// It has no clock: when a program has had its time is for others to say.
package family
