// Package tools is what the commands of a session can ask for by mini-tool: a
// registry of tools, each a name, a usage and a call, with what bounds them all:
// which are allowed, how long they may take, how much they may say.
//
// A tool gets its arguments as the shell made them of the command line. What it
// returns as Output is all that the model sees; Details go on record for people
// and programs. A mistake in the arguments is answered with the usage and exit
// code 2, a failure with its text and exit code 1: the model reads it and goes
// on. Nothing that a tool does ends the attempt, not even a panic.
//
//	box, err := tools.New(tools.Config{Tools: []tools.Tool{notes, search}})
//	out := a.Run(ctx, agent.Session{Tools: box, ...})
package tools
