// Package tools lets the commands of a session call tools through mini-tool. A
// Registry holds the tools (each has a name, a usage and a function), and
// enforces which may be called, for how long, and how much output they may
// print.
//
// A tool receives its arguments as the shell parsed them. The model sees only
// Result.Output; Result.Details are recorded for people and programs. Invalid
// arguments are answered with the usage and exit code 2, other failures with
// the error and exit code 1, so that the model can continue. No tool can end
// the attempt, not even by a panic.
//
//	registry, err := tools.New(tools.Config{Tools: []tools.Tool{notes, search}})
//	out := a.Run(ctx, agent.Session{Tools: registry, ...})
package tools
