package doctor

import (
	"context"
	"errors"
	"os/exec"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/bubblewrap"
	"github.com/minibench/mini/env/helper/binaries"
)

// sandbox starts and stops a sandbox without a container engine, because no single setting of
// the system shows whether a user may create namespaces.
func (e *checker) sandbox(ctx context.Context) []Check {
	if e.TrySandbox == nil {
		return e.programs()
	}
	err := e.TrySandbox(ctx)
	envErr, isEnvErr := errors.AsType[*env.Error](err)
	switch {
	case errors.Is(err, binaries.ErrNotBuilt):
		return nil // reported by the helper check
	case isEnvErr:
		return []Check{{"sandbox", Fail, envErr.Op + ": " + envErr.Err.Error(), envErr.Hint}}
	case err != nil:
		return []Check{{"sandbox", Fail, err.Error(), ""}}
	}
	return []Check{
		{"sandbox", OK, e.Environment + " works: a sandbox was started and stopped", ""},
		{"bounds", Warn, bubblewrap.NoLimitsWarning, "use fewer workers, or --environment-class docker for untrusted tasks"},
	}
}

// programs checks the programs that a sandbox on this machine needs.
func (e *checker) programs() (checks []Check) {
	for _, name := range []string{"bash", "git"} {
		if _, err := exec.LookPath(name); err != nil && e.runsOnHost() {
			checks = append(checks, Check{"sandbox", Warn, name + " is missing", "install it: commands run in bash, and git creates the patches"})
		}
	}
	return checks
}
