// Package specs has the tables of the official SWE-bench sets: for each
// repository, and each version of it, the commands that an evaluation runs,
// and how its logs are read. Rows of today bring all of this themselves; the
// tables stand in for rows that do not. They are facts of the official harness
// (github.com/SWE-bench/SWE-bench): the commands from release 4.1.0, the last
// one that had such tables, the parsers from release 5.0.2.
//
//	spec, err := specs.For("django/django", "3.0")
//	parser := specs.Parser("django/django") // "parse_log_django"
package specs

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
)

// Python is the language whose instances have an evaluation of their own kind;
// all others share one.
const Python = "py"

// Spec is what an evaluation of one version of a repository needs. What only
// the building of its image needs is left out.
type Spec struct {
	// Language is Python, "c", "go", "java", "js", "php", "rb" or "rs".
	Language string `json:"-"`
	// EvalCommands and Install prepare a Python repository; Build one in
	// another language. All may be empty.
	EvalCommands []string `json:"eval_commands"`
	Install      string   `json:"install"`
	Build        []string `json:"build"`
	// Test are the commands that run the tests. A Python repository has one,
	// to which the names of test files are added; it may have none at all.
	Test commands `json:"test_cmd"`
}

// Override is what sets one instance apart from its repository.
type Override struct {
	// ExtraLine is run between the test patch and the tests; may be empty.
	ExtraLine string `json:"extra_line"`
	// StreamIsolation keeps what the tests write to stderr out of the part of
	// the log that is read for verdicts.
	StreamIsolation bool `json:"stream_isolation"`
}

// ErrUnknown is wrapped when the tables lack a repository, or a version of it.
var ErrUnknown = errors.New("not in the tables of SWE-bench")

// For finds the commands for a version of a repository, by the names that rows
// use. The error wraps ErrUnknown.
func For(repo, version string) (Spec, error) {
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

// Parser is the name of the parser for logs of a repository; empty when the
// tables have none.
func Parser(repo string) string { return tables().Repos[repo].Parser }

// EvalType is "pass_and_fail" or "fail_only" for a repository that the tables
// have, else empty.
func EvalType(repo string) string { return tables().Repos[repo].EvalType }

// OverrideFor is what sets an instance apart; nothing for nearly all.
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

// tables are read when they are first asked for: most rows never ask.
var tables = sync.OnceValue(func() file {
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		panic("specs.json: " + err.Error()) // a test reads it: it cannot be wrong in a build
	}
	return f
})

// commands are a list, or for Python one string.
type commands []string

// UnmarshalJSON implements json.Unmarshaler.
func (c *commands) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*c = commands{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(c))
}
