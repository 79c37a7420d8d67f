// Package server is the helper's side of the conversation in package helper:
// it reads the client's frames, runs one command at a time, and answers. What
// commands ask for comes in over a socket of its own, from mini-tool; commands that
// the client runs inside of an asking one run beside it.
//
// It ends, and everything it started with it, at the end of its input, when
// its lease runs out, and at the first frame that breaks the rules. Linux only.
package server
