package grade

import (
	"slices"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/runner/grade/logs"
)

// Tier says how certainly the infrastructure, and not the patch, caused a failure.
type Tier string

// The tiers of failures.
const (
	// TierEnvironment means that the machine or the container failed.
	TierEnvironment Tier = "environment"
	// TierAmbiguous means that the patch may have caused the failure.
	TierAmbiguous Tier = "ambiguous"
)

// Failure is an infrastructure problem that a log mentions. The zero value means
// none. A Failure never changes a verdict.
type Failure struct {
	Tier   Tier
	Reason string // one of FailureReasons
}

// failurePatterns lists the known failures in the order in which ClassifyFailure
// checks them. A text matches if it contains one of the substrings or the pattern.
var failurePatterns = []struct {
	tier       Tier
	reason     string
	substrings []string
	pattern    *lazyregexp.Regexp
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
	for _, p := range failurePatterns {
		if p.tier == t {
			names = append(names, p.reason)
		}
	}
	return names
}

// ClassifyFailure searches texts for known failures. It returns the zero
// Failure if it finds none.
func ClassifyFailure(texts ...string) Failure {
	for _, p := range failurePatterns {
		for _, text := range texts {
			contains := func(substring string) bool { return strings.Contains(text, substring) }
			if slices.ContainsFunc(p.substrings, contains) || p.pattern != nil && p.pattern.MatchString(text) {
				return Failure{p.tier, p.reason}
			}
		}
	}
	return Failure{}
}

var (
	// killed matches the shell's message about a process that the kernel killed
	// because memory ran out. Lines may end with a CR.
	killed = lazyregexp.New(`(?m)(?:^|\r)Killed(?:\r|$)`)
	// timedOut matches the line that the harness adds to a log after a timeout.
	timedOut = logs.PythonPattern(`Timeout error: \d+ seconds exceeded`)
)
