// Package local runs commands on the host, as the user, in a directory of the caller's
// choice, without isolation. It is for work that the user watches, for tests, and for
// machines without a container engine.
//
// With Config.Helper it implements env.Environment fully with regard to output,
// timeouts and processes. Files and the network are not isolated: commands have the
// rights of the user. Commands run below a helper, a child process that kills them
// when this program exits, even by kill -9 (see package child).
//
// Without a helper, as on systems other than Linux, commands are children of this
// program, each in its own process group. Then a timeout does not kill processes that
// leave the group, background processes are not reported, a script must fit into one
// argument, and there are no tools.
package local
