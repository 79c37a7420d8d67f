package grade

import (
	"slices"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/runner/grade/logs"
)

// Tier is the certainty that a failure is an infrastructure failure.
type Tier string

// The tiers of failures.
const (
	// TierEnvironment: the machine or the container failed, not the patch.
	TierEnvironment Tier = "environment"
	// TierAmbiguous: the patch may have caused the failure.
	TierAmbiguous Tier = "ambiguous"
)

// Failure is an infrastructure problem that a log shows. The zero value means
// none. A Failure never changes a score.
type Failure struct {
	Tier   Tier
	Reason string // one of FailureReasons
}

// failurePatterns lists the known failures in the order in which they are
// checked.
var failurePatterns = []struct {
	tier   Tier
	reason string
	words  []string
	also   *lazyregexp.Regexp
}{
	{TierEnvironment, "browser_launch_failed", []string{"Failed to launch", "Failed to connect to the bus"}, nil},
	{TierEnvironment, "display_unavailable", []string{"cannot open display", "Missing X server", "unable to open X display"}, nil},
	{TierEnvironment, "out_of_memory", []string{"Cannot allocate memory", "OutOfMemoryError"}, killed},
	{TierEnvironment, "container_unavailable", []string{"Error response from daemon", "Cannot connect to the Docker daemon"}, nil},
	{TierEnvironment, "network_unreachable", []string{"Could not resolve host", "Temporary failure in name resolution"}, nil},
	{TierAmbiguous, "missing_module", []string{"Cannot find module", "MODULE_NOT_FOUND", "ModuleNotFoundError"}, nil},
	{TierAmbiguous, "no_tests_collected", []string{"no tests ran", "collected 0 items"}, nil},
	{TierAmbiguous, "tests_timed_out", nil, timedOut},
}

// FailureReasons returns the official names of a tier's failures.
func FailureReasons(t Tier) []string {
	var names []string
	for _, s := range failurePatterns {
		if s.tier == t {
			names = append(names, s.reason)
		}
	}
	return names
}

// ClassifyFailure searches texts for known failures. It returns the zero
// Failure if it finds none.
func ClassifyFailure(texts ...string) Failure {
	for _, s := range failurePatterns {
		for _, text := range texts {
			has := func(word string) bool { return strings.Contains(text, word) }
			if slices.ContainsFunc(s.words, has) || s.also != nil && s.also.MatchString(text) {
				return Failure{s.tier, s.reason}
			}
		}
	}
	return Failure{}
}

var (
	// killed matches the shell's message about a process killed by the kernel when
	// out of memory. Lines may end with a CR.
	killed = lazyregexp.New(`(?m)(?:^|\r)Killed(?:\r|$)`)
	// timedOut matches the line that the harness adds to a log after a timeout.
	timedOut = logs.PythonPattern(`Timeout error: \d+ seconds exceeded`)
)
