package configs

import (
	"strings"

	"github.com/minibench/mini/agent/policy"
)

// validatePolicy finds rules that cannot be kept.
func (r *Resolved) validatePolicy() []error {
	var errs []error
	for _, w := range policy.Check(r.Policy, EnvironmentClasses) {
		key := "policy." + w.Key
		if len(w.Known) > 0 {
			errs = append(errs, r.class(key, w.Given, w.Known, "")...)
			continue
		}
		at := key
		if _, ok := r.origins[at]; !ok { // a key that is missing: the item is named
			at = strings.TrimSuffix(at, at[strings.LastIndexByte(at, '.'):])
		}
		errs = append(errs, &mistake{r.place(at, 0) + key + ": " + w.Text})
	}
	return errs
}
