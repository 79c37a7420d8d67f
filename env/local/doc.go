// Package local is a sandbox without walls: commands run on the host, as the
// user, in a directory of the caller's choice. It is for work that the user
// watches, for tests, and for machines without a container engine.
//
// It keeps every promise of env.Environment about output, timeouts and
// processes (on Linux; see package process for other systems), and none about
// files or the network: commands can do whatever the user can. Nor can it keep
// the promise of Close for a program that is itself killed: what runs then runs
// on, without an owner.
package local
