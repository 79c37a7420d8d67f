// Package specs contains tables of the official SWE-bench harness: the commands of an
// evaluation for each repository and version, and the log parser of each repository.
// Current datasets have this data in their rows; the tables are for older rows. The
// commands are from release 4.1.0 of the harness (github.com/SWE-bench/SWE-bench), the
// last with such tables, and the parsers from release 5.0.2.
//
//	spec, err := specs.Lookup("django/django", "3.0")
//	parser := specs.LogParser("django/django") // "parse_log_django"
package specs

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
)

// Python is the language that needs its own kind of evaluation script; all other languages
// share one kind.
const Python = "py"

// Spec describes the evaluation of one version of a repository. It omits the data that only
// the build of the image needs.
type Spec struct {
	// Language is Python, "c", "go", "java", "js", "php", "rb" or "rs".
	Language string `json:"-"`
	// EvalCommands and Install prepare a Python repository, Build one in another
	// language. All may be empty.
	EvalCommands []string `json:"eval_commands"`
	Install      string   `json:"install"`
	Build        []string `json:"build"`
	// Test contains the commands that run the tests. A Python repository has at most one
	// command; the evaluation script appends the names of the test files to it.
	Test commands `json:"test_cmd"`
}

// Override contains the exceptions for one instance.
type Override struct {
	// ExtraLine runs between the test patch and the tests; may be empty.
	ExtraLine string `json:"extra_line"`
	// StreamIsolation excludes stderr of the tests from the log that is parsed.
	StreamIsolation bool `json:"stream_isolation"`
}

// ErrUnknown means that the tables lack a repository or version.
var ErrUnknown = errors.New("not in the tables of SWE-bench")

// Lookup returns the commands for a version of a repository, named as in rows. The error
// wraps ErrUnknown.
func Lookup(repo, version string) (Spec, error) {
	r, ok := tables().Repos[repo]
	if !ok {
		return Spec{}, fmt.Errorf("repository %.100q is %w", repo, ErrUnknown)
	}
	spec, ok := r.Versions[version]
	if !ok {
		return Spec{}, fmt.Errorf("version %.100q of %s is %w", version, repo, ErrUnknown)
	}
	spec.Language = r.Language
	return spec, nil
}

// LogParser returns the name of the log parser for a repository; empty if unknown.
func LogParser(repo string) string { return tables().Repos[repo].Parser }

// EvalType returns "pass_and_fail" or "fail_only"; empty for an unknown repository.
func EvalType(repo string) string { return tables().Repos[repo].EvalType }

// OverrideFor returns the exceptions for an instance; for most there are none.
func OverrideFor(instanceID string) Override { return tables().Meta.Overrides[instanceID] }

//go:embed specs.json
var data []byte

type file struct {
	Meta struct {
		Overrides map[string]Override `json:"v5_row_overrides"`
	} `json:"_meta"`
	Repos map[string]struct {
		Language string          `json:"language"`
		Parser   string          `json:"log_parser"`
		EvalType string          `json:"eval_type"`
		Versions map[string]Spec `json:"versions"`
	} `json:"repos"`
}

// tables parses the tables on first use; most rows do not need them.
var tables = sync.OnceValue(func() file {
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		panic("specs.json: " + err.Error()) // cannot happen: a test parses it
	}
	return f
})

// commands is a list of strings, or one string, in JSON.
type commands []string

// UnmarshalJSON implements json.Unmarshaler.
func (c *commands) UnmarshalJSON(data []byte) error {
	var command string
	if json.Unmarshal(data, &command) == nil {
		*c = commands{command}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(c))
}
