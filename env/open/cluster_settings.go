package envopen

import (
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/usage"
)

// CheckClusterSettings returns an error if the user set a setting that pods cannot have. It
// ignores mini's defaults, which are meant for containers of an engine.
func CheckClusterSettings(cfg *configs.Resolved) error {
	e := cfg.Environment
	for _, s := range []struct {
		key    string
		set    bool
		reason string
	}{
		{"environment.mounts", len(e.Mounts) > 0, "the folders of this machine are not on the nodes of the cluster; leave it out, or use docker"},
		{"environment.ulimits", len(e.Ulimits) > 0, "pods have the limits of the container runtime of their node; leave it out, or use docker"},
		{"environment.pids_limit", e.PidsLimit != 0, "the kubelet of the node limits the processes of a pod; leave it out, or use docker"},
		{"environment.platform", e.Platform != "", "the node decides it; set environment.kubernetes.node_selector, for example {kubernetes.io/arch: amd64}"},
	} {
		if o, isSet := cfg.UserOrigin(s.key); isSet && s.set {
			return usage.Errorf("%s is set (%s), but kubernetes does not support it: %s", s.key, o, s.reason)
		}
	}
	return nil
}
