// Package server is the helper's side of the conversation in package helper:
// it reads the client's frames, runs one command at a time, and answers.
//
// It ends, and everything it started with it, at the end of its input, when
// its lease runs out, and at the first frame that breaks the rules. Linux only.
package server
