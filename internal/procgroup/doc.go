// Package procgroup runs a program in its own process group and kills it with all
// processes that it started.
//
// On Linux the program also gets a tag in its environment, by which Kill finds
// processes that left the process group. Kill does not find a process that
// leaves the group and clears its environment. (Package env/process handles the
// processes of sandboxed commands.)
//
//	group := procgroup.New(cmd, environ)
//	cmd.Cancel = group.Kill
//	err := group.Run()
//
// The package kills the group before it reaps the leader: afterwards the kernel
// may assign the group's number to other processes.
//
// The package has no timeouts; the caller sets them with a context.
package procgroup
