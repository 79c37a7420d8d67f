package docker

import (
	"context"
	"slices"
	"strings"

	"github.com/minibench/mini/env"
)

// confiningOptions are prefixes of the engine's security options that confine
// commands with SYS_ADMIN. AppArmor and SELinux forbid mounting; with the others,
// root in a container is not root on the machine.
var confiningOptions = []string{"name=apparmor", "name=selinux", "name=userns", "name=rootless"}

// IsolationWarning returns a warning if untrusted commands could take over the
// engine's machine because they can mount, or "". It does not consider bugs in the
// kernel.
func (e *Engine) IsolationWarning(ctx context.Context, c Config) (string, error) {
	if !c.canMount() {
		return "", nil
	}
	info, err := e.api.Info(ctx)
	if err != nil {
		return "", engineError(ctx, env.DaemonUnavailable, "get engine info", err)
	}
	if isConfined(info.SecurityOptions) {
		return "", nil
	}
	return "a hostile patch could become root of the engine's machine: its container has SYS_ADMIN, " +
		"and the machine has neither AppArmor nor SELinux nor user namespaces. " +
		"Evaluate patches of strangers on a dedicated machine", nil
}

func isConfined(options []string) bool {
	return slices.ContainsFunc(options, func(option string) bool {
		return slices.ContainsFunc(confiningOptions, func(name string) bool { return strings.HasPrefix(option, name) })
	})
}
