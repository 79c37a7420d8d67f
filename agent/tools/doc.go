// Package tools lets the commands of a session call tools through mini-tool. A
// Registry holds the tools, and enforces which of them may be called, for how
// long, and how much they may print.
//
// A tool receives its arguments as the shell parsed them. The model sees only
// Result.Output; Result.Details are recorded for people and programs. For
// invalid arguments mini-tool prints the usage and exits with code 2; for other
// failures it prints the error and exits with code 1. The model can then
// continue. No tool can end the attempt, not even by a panic.
//
//	registry, err := tools.New(tools.Config{Tools: []tools.Tool{notes, search}})
//	out := a.Run(ctx, agent.Session{Tools: registry, ...})
package tools
