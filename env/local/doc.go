// Package local is a sandbox without walls: commands run on the host, as the
// user, in a directory of the caller's choice. It is for work that the user
// watches, for tests, and for machines without a container engine.
//
// With Config.Helper it keeps every promise of env.Environment about output,
// timeouts and processes, and none about files or the network: commands can do
// whatever the user can. They run below a helper, a child of this program that
// kills them when the program is gone, kill -9 included (see package child).
//
// Without a helper, as on systems other than Linux, commands are children of this
// program, each in a process group. What leaves its group escapes a timeout, what
// runs in the background is not reported, a script must fit into one argument, and
// there are no tools.
package local
