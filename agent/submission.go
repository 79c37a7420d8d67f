package agent

import (
	"bytes"

	"github.com/minibench/mini/env"
)

// Markers are the first lines by which a command's output becomes the
// submission. The second is what older prompts of mini-swe-agent use.
var Markers = []string{"COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT"}

// space is what Python's str.lstrip removes, as far as it is one byte.
const space = " \t\n\v\f\r\x1c\x1d\x1e\x1f"

// Submission is what a command hands in by the submit rule; false says that it
// hands in nothing.
func Submission(r env.Result) ([]byte, bool) { return submission(r) }

// submission applies the submit rule: exit code 0, and the first line of the
// output, white space before it aside, is a marker. What follows that line,
// byte for byte, is the submission. A cut output is never one.
func submission(r env.Result) ([]byte, bool) {
	if r.ExitCode != 0 || r.TimedOut || r.Truncated {
		return nil, false
	}
	first, rest, _ := bytes.Cut(bytes.TrimLeft(r.Output, space), []byte("\n"))
	first = bytes.Trim(first, space)
	for _, m := range Markers {
		if string(first) == m {
			return rest, true
		}
	}
	return nil, false
}
