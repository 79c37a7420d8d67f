package configs

import (
	"strings"

	"github.com/minibench/mini/agent/policy"
)

// validatePolicy finds invalid rules.
func (r *Resolved) validatePolicy() []error {
	var errs []error
	for _, w := range policy.Check(r.Policy, EnvironmentClasses) {
		key := "policy." + w.Key
		if len(w.Allowed) > 0 {
			errs = append(errs, r.oneOf(key, w.Value, w.Allowed, "")...)
			continue
		}
		at := key
		if _, ok := r.origins[at]; !ok { // a missing key: locate its item
			at = strings.TrimSuffix(at, at[strings.LastIndexByte(at, '.'):])
		}
		errs = append(errs, &configError{r.location(at, 0) + key + ": " + w.Text})
	}
	return errs
}
