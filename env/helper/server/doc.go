// Package server is the server side of the protocol in package helper, as run by
// mini-helper: it reads the client's frames, runs one command at a time and sends the
// results. It also serves the tool requests of mini-tool on a Unix socket and forwards
// them to the client, and runs nested commands at the same time as their outer
// command.
//
// Serve kills all processes and returns at the end of its input, when the lease
// expires, at the first invalid frame, or when its context ends. Linux only.
package server
