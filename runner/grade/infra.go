package grade

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Tier says how sure it is that a failure is the machine's.
type Tier string

// The tiers of failures.
const (
	// Environment: the machine or the container failed, not the patch.
	Environment Tier = "environment"
	// Ambiguous: a patch may have done it as well.
	Ambiguous Tier = "ambiguous"
)

// Failure is what kept an evaluation from giving a verdict, as far as its log
// tells. The zero value is none. It never changes a score.
type Failure struct {
	Tier   Tier
	Reason string // one of Reasons
}

// signs are the reasons in the order in which they are tried.
var signs = []struct {
	tier   Tier
	reason string
	words  []string
	also   func(text string) bool
}{
	{Environment, "browser_launch_failed", []string{"Failed to launch", "Failed to connect to the bus"}, nil},
	{Environment, "display_unavailable", []string{"cannot open display", "Missing X server", "unable to open X display"}, nil},
	{Environment, "out_of_memory", []string{"Cannot allocate memory", "OutOfMemoryError"}, wasKilled},
	{Environment, "container_unavailable", []string{"Error response from daemon", "Cannot connect to the Docker daemon"}, nil},
	{Environment, "network_unreachable", []string{"Could not resolve host", "Temporary failure in name resolution"}, nil},
	{Ambiguous, "missing_module", []string{"Cannot find module", "MODULE_NOT_FOUND", "ModuleNotFoundError"}, nil},
	{Ambiguous, "no_tests_collected", []string{"no tests ran", "collected 0 items"}, nil},
	{Ambiguous, "tests_timed_out", nil, timedOut},
}

// Reasons are the names of a tier's failures, as other tools know them.
func Reasons(t Tier) []string {
	var names []string
	for _, s := range signs {
		if s.tier == t {
			names = append(names, s.reason)
		}
	}
	return names
}

// Classify looks in texts for what failed. The zero Failure says that nothing
// known did.
func Classify(texts ...string) Failure {
	for _, s := range signs {
		for _, text := range texts {
			has := func(word string) bool { return strings.Contains(text, word) }
			if slices.ContainsFunc(s.words, has) || s.also != nil && s.also(text) {
				return Failure{s.tier, s.reason}
			}
		}
	}
	return Failure{}
}

// wasKilled finds a line that is what a shell says of a process that the kernel
// killed for its memory. A line may end in any way that Python knows.
func wasKilled(text string) bool {
	const word = "Killed"
	for i := 0; ; i += len(word) {
		at := strings.Index(text[i:], word)
		if at < 0 {
			return false
		}
		i += at
		end := i + len(word)
		if (i == 0 || isLineEnd(text[i-1])) && (end == len(text) || isLineEnd(text[end])) {
			return true
		}
	}
}

func isLineEnd(c byte) bool { return c == '\n' || c == '\r' }

// timedOut finds what the harness adds to a log that it cuts short:
// "Timeout error: 1800 seconds exceeded."
func timedOut(text string) bool {
	for {
		_, rest, ok := strings.Cut(text, "Timeout error: ")
		if !ok {
			return false
		}
		after := rest
		for len(after) > 0 {
			r, size := utf8.DecodeRuneInString(after)
			if _, digit := digitOf(r); !digit {
				break
			}
			after = after[size:]
		}
		if len(after) < len(rest) && strings.HasPrefix(after, " seconds exceeded") {
			return true
		}
		text = rest
	}
}
