package docker

import (
	"context"
	"slices"
	"strings"

	"github.com/minibench/mini/env"
)

// confining are the engine's words for what holds commands that can mount. Of
// these AppArmor and SELinux forbid it, and with the others root in a container
// is not root of the machine.
var confining = []string{"name=apparmor", "name=selinux", "name=userns", "name=rootless"}

// Exposure is a sentence on how commands could get hold of the engine's machine,
// for whoever runs commands of strangers; "" where nothing is known against it.
// It is about what the engine lets such containers do, not about mistakes in the
// kernel.
func (e *Engine) Exposure(ctx context.Context, c Config) (string, error) {
	if !c.canMount() {
		return "", nil
	}
	info, err := e.api.Info(ctx)
	if err != nil {
		return "", failure(ctx, env.DaemonUnavailable, "ask engine about itself", err)
	}
	if confined(info.SecurityOptions) {
		return "", nil
	}
	return "a hostile patch could become root of the engine's machine, which has neither AppArmor nor SELinux nor user namespaces: " +
		"its container has SYS_ADMIN. Judge strangers' patches on a machine that is for that", nil
}

func confined(options []string) bool {
	return slices.ContainsFunc(options, func(option string) bool {
		return slices.ContainsFunc(confining, func(name string) bool { return strings.HasPrefix(option, name) })
	})
}
