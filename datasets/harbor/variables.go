package harbor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
)

// hostVariable matches a value that stands for a variable of the host: ${NAME} or
// ${NAME:-default}, and nothing else.
var hostVariable = lazyregexp.New(`^\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}$`)

// environments returns all tables of variables of the task.
func (t *Task) environments() []map[string]string {
	all := []map[string]string{t.Environment.Env, t.Solution.Env}
	for _, s := range t.Steps {
		all = append(all, s.Verifier.Env)
		if e := s.Verifier.Environment; e != nil {
			all = append(all, e.Env)
		}
	}
	return all
}

// RequiredVariables returns the sorted names of the host's variables that the task needs and
// that have no default.
func (t *Task) RequiredVariables() []string {
	names := map[string]bool{}
	for _, env := range t.environments() {
		for _, value := range env {
			if m := hostVariable.FindStringSubmatch(value); m != nil && m[2] == "" {
				names[m[1]] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Expand returns variables with the values of the host's variables. lookup returns the value
// of a variable that the task may use. A variable that it may not use has its default.
func Expand(env map[string]string, lookup func(name string) (string, bool)) (map[string]string, error) {
	expanded := make(map[string]string, len(env))
	for name, value := range env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			return nil, fmt.Errorf("%.60q is not the name of an environment variable", name)
		}
		if m := hostVariable.FindStringSubmatch(value); m != nil {
			hostValue, ok := lookup(m[1])
			switch {
			case ok:
				value = hostValue
			case m[2] == "":
				return nil, fmt.Errorf("the variable %s is not set", m[1])
			default:
				value = m[3]
			}
		}
		expanded[name] = value
	}
	return expanded, nil
}
