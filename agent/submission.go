package agent

import (
	"bytes"
	"slices"
	"strings"

	"github.com/minibench/mini/env"
)

// SubmitMarkers mark a command's output as a submission if one of them is its
// first line. Older prompts of mini-swe-agent use the second one.
var SubmitMarkers = []string{"COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT"}

// IsBareSubmission reports whether a command only prints a marker: it submits,
// and does nothing else.
func IsBareSubmission(command string) bool {
	words := strings.Fields(command)
	if len(words) != 2 || words[0] != "echo" || strings.Contains(strings.TrimSpace(command), "\n") {
		return false
	}
	marker := words[1]
	if n := len(marker) - 1; n > 0 && (marker[0] == '"' || marker[0] == '\'') && marker[n] == marker[0] {
		marker = marker[1:n]
	}
	return slices.Contains(SubmitMarkers, marker)
}

// pythonSpace are the single-byte characters that Python's str.lstrip removes.
const pythonSpace = " \t\n\v\f\r\x1c\x1d\x1e\x1f"

// ParseSubmission returns the text that a command submits; false if it submits
// nothing. A command submits if its exit code is 0 and the first line of its
// output that is not blank, without white space at its ends, is a marker. The
// submission is everything after that line, unchanged. Truncated output is
// never a submission.
func ParseSubmission(r env.Result) ([]byte, bool) {
	if r.ExitCode != 0 || r.TimedOut || r.Truncated {
		return nil, false
	}
	first, rest, _ := bytes.Cut(bytes.TrimLeft(r.Output, pythonSpace), []byte("\n"))
	first = bytes.Trim(first, pythonSpace)
	for _, m := range SubmitMarkers {
		if string(first) == m {
			return rest, true
		}
	}
	return nil, false
}
