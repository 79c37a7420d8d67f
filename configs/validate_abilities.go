package configs

import (
	"github.com/minibench/mini/env"
)

// validateAbilities is about what bounds every tool; what a kind of tools needs is
// found by whoever makes them, before anything is started.
func (r *Resolved) validateAbilities() []error {
	var errs []error
	if t := r.Tools.Timeout; !(t >= 0) || t > maxSeconds {
		errs = append(errs, r.errorf("tools.timeout", "%v is not a number of seconds between 0 and %d; 0 means a minute", t, int(maxSeconds)))
	}
	if n := r.Tools.MaxOutput; n < 0 || n > env.MaxToolAnswer {
		errs = append(errs, r.errorf("tools.max_output", "%d is not a number of bytes up to %d; 0 means 64 KB", n, env.MaxToolAnswer))
	}
	return errs
}
