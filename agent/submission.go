package agent

import (
	"bytes"

	"github.com/minibench/mini/env"
)

// SubmitMarkers are the first lines by which a command's output becomes the
// submission. The second one is used by older prompts of mini-swe-agent.
var SubmitMarkers = []string{"COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT"}

// space has the single-byte characters that Python's str.lstrip removes.
const space = " \t\n\v\f\r\x1c\x1d\x1e\x1f"

// ParseSubmission returns what a command submits; false if it submits nothing.
// A command submits if its exit code is 0 and the first line of its output,
// ignoring leading white space, is a marker. The submission is everything after
// that line, unchanged. Truncated output is never a submission.
func ParseSubmission(r env.Result) ([]byte, bool) {
	if r.ExitCode != 0 || r.TimedOut || r.Truncated {
		return nil, false
	}
	first, rest, _ := bytes.Cut(bytes.TrimLeft(r.Output, space), []byte("\n"))
	first = bytes.Trim(first, space)
	for _, m := range SubmitMarkers {
		if string(first) == m {
			return rest, true
		}
	}
	return nil, false
}
