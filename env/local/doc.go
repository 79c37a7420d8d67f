// Package local is a sandbox without walls: commands run on the host, as the
// user, in a directory of the caller's choice. It is for work that the user
// watches, for tests, and for machines without a container engine.
//
// It keeps every promise of env.Environment about output, timeouts and
// processes (on Linux; see package process for other systems), and none about
// files or the network: commands can do whatever the user can.
//
// With Config.Helper the commands run below a helper, a child of this program
// that kills them when the program is gone, kill -9 included (see package
// child). It costs some milliseconds to start, and about a millisecond of
// processor time a command on a busy machine. Without one the program looks
// after its commands itself, which ends with it: what runs when it is killed
// runs on, without an owner.
package local
