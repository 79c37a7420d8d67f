package configs

import (
	"strings"

	"github.com/minibench/mini/agent/policy"
)

// validatePolicy finds invalid rules.
func (r *Resolved) validatePolicy() []error {
	var errs []error
	for _, problem := range policy.Check(r.Policy, EnvironmentClasses) {
		key := "policy." + problem.Key
		if len(problem.Allowed) > 0 {
			errs = append(errs, r.oneOf(key, problem.Value, problem.Allowed, "")...)
			continue
		}
		located := key
		if _, ok := r.origins[located]; !ok { // the key is missing: use the location of its item
			located = strings.TrimSuffix(located, located[strings.LastIndexByte(located, '.'):])
		}
		errs = append(errs, &configError{r.location(located, 0) + key + ": " + problem.Text})
	}
	return errs
}
