package task

import (
	"errors"
	"fmt"

	"github.com/minibench/mini/agent/policy"
	"github.com/minibench/mini/agent/policy/saved"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/config"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/runner/setup"
)

// usePolicy sets the policy of the session, with the commands that the user always allows. Those of
// the folder hold only where commands run in it.
func (t *session) usePolicy(c *chat.Config) error {
	p, err := setup.NewPolicy(t.cfg, t.sandboxes.Class)
	if p == nil && err == nil { // it allows everything, and the user may answer "always"
		p, err = policy.New(policy.Config{}, policy.Options{Environment: t.sandboxes.Class})
	}
	if err != nil {
		return err
	}
	c.Policy, c.Rules = p, p
	if !t.Interactive || !envopen.IsHostClass(t.sandboxes.Class) {
		return nil
	}
	store, err := config.AllowSaved(p, t.dir())
	switch {
	case errors.Is(err, saved.ErrInside):
		return nil
	case err != nil:
		_, err = fmt.Fprintln(t.Err, "mini: warning:", cmdutil.Sanitize(err.Error()))
		return err
	}
	c.SaveRule = store.Add
	return nil
}
