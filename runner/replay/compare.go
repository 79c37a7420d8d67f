// Package replay runs the commands of a recorded attempt again, in a fresh
// sandbox, and says where what they do differs.
package replay

import (
	"bytes"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/trajectories"
)

// Match says how much alike two executions of a command are.
type Match string

// The degrees of likeness.
const (
	Exact      Match = "exact"      // byte for byte
	Normalised Match = "normalised" // but for times, addresses, temporary names and the order of hashes
	Diverged   Match = "diverged"
)

// Compare holds what a command did now against what is recorded of it.
// Difference is the first line that is another, where it diverged.
func Compare(recorded trajectories.Execution, now env.Result) (m Match, difference string) {
	if recorded.ExitCode == now.ExitCode && recorded.TimedOut == now.TimedOut && bytes.Equal(recorded.Output, now.Output) {
		return Exact, ""
	}
	return Diverged, "the output differs"
}
