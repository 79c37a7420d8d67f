package envopen

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/usage"
)

// unsupportedReasons say why a class does not support settings, or a single setting, and what to do.
var unsupportedReasons = map[string]string{
	"local":                             "commands run as this user on this machine, with its network; leave it out, or use docker",
	"bubblewrap":                        "it shares this machine's programs and user, and limits no resources; leave it out, or use docker",
	"kubernetes environment.mounts":     "the folders of this machine are not on the nodes of the cluster; leave it out, or use docker",
	"kubernetes environment.ulimits":    "pods have the limits of the container runtime of their node; leave it out, or use docker",
	"kubernetes environment.pids_limit": "the kubelet of the node limits the processes of a pod; leave it out, or use docker",
	"kubernetes environment.platform":   "the node decides it; set environment.kubernetes.node_selector, for example {kubernetes.io/arch: amd64}",
}

// CheckSettings returns an error if the user set a setting that sandboxes of a class cannot have. It
// ignores mini's defaults, which are meant for containers. A class supports what it implies: bubblewrap
// has a read-only root and no capabilities, and local commands may gain privileges.
func CheckSettings(cfg *configs.Resolved, class string) error {
	for i, section := range []string{"environment.", "run."} {
		settings := []reflect.Value{reflect.ValueOf(cfg.Environment), reflect.ValueOf(cfg.Run)}[i]
		for i := range settings.NumField() {
			field, value := settings.Type().Field(i), settings.Field(i)
			if !slices.Contains(strings.Fields(field.Tag.Get("lacks")), class) {
				continue
			}
			name, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
			key := section + name
			origin, isUsers := cfg.UserOrigin(key)
			if isUsers && configs.IsSet(value) && (key != "environment.network" || value.String() != "host") {
				reason := cmp.Or(unsupportedReasons[class+" "+key], unsupportedReasons[class])
				return usage.Errorf("%s is set (%s), but %s does not support it: %s", key, origin, class, reason)
			}
		}
	}
	return nil
}
