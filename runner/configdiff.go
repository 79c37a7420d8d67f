package runner

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/datasets"
)

// ignoredKeys are settings, and groups of settings, that do not affect what an
// attempt does. Results from before and after a change of them are comparable.
var ignoredKeys = []string{
	"eval", "replay", "run.workers", "run.attempts", "run.eval", "run.resume_attempts", "run.fsync", "run.shared", "run.keep", "run.max_tries",
	"run.prefetch", "run.image_budget", "run.min_free_disk", "run.pulls_per_minute",
	"run.max_starts", "run.total_cost_limit", "run.total_calls", "run.max_consecutive_provider_failures",
	"environment.kubernetes.context", "environment.kubernetes.kubeconfig", "environment.kubernetes.namespace",
	"environment.kubernetes.labels", "environment.kubernetes.annotations", "environment.kubernetes.node_selector",
	"environment.kubernetes.tolerations", "environment.kubernetes.affinity", "environment.kubernetes.priority_class",
	"environment.kubernetes.queue", "environment.kubernetes.do_not_disrupt", "environment.kubernetes.max_pods",
	"environment.kubernetes.max_starts", "environment.kubernetes.qps", "environment.kubernetes.burst",
	"environment.kubernetes.schedule_timeout", "environment.kubernetes.start_timeout", "environment.kubernetes.lease",
	"environment.kubernetes.image_pull_secrets", "environment.kubernetes.image_pull_policy", "environment.kubernetes.registry_mirror",
	"environment.kubernetes.helper", "environment.kubernetes.helper_image", "environment.kubernetes.service_account",
	"environment.kubernetes.disruption_retries",
	"model.max_tries", "model.max_wait", "model.requests_per_minute", "model.tokens_per_minute", "model.max_concurrent",
}

// maxChanged limits the number of settings that changedConfig names.
const maxChanged = 3

// changedConfig describes for the user which settings differ. It returns "" if no
// setting outside ignoredKeys differs. old and current are YAML, as in config.yaml,
// or JSON, as in the headers of journals.
func changedConfig(old, current []byte) string {
	var oldValue, currentValue any
	if yaml.Unmarshal(old, &oldValue) != nil || yaml.Unmarshal(current, &currentValue) != nil {
		return "configuration"
	}
	var keys []string
	diffKeys("", oldValue, currentValue, &keys)
	usesCluster := isClusterConfig(currentValue)
	keys = slices.DeleteFunc(keys, func(key string) bool {
		return !AffectsResults(key) || !usesCluster && strings.HasPrefix(key, "environment.kubernetes")
	})
	slices.Sort(keys)
	switch n := len(keys); {
	case n == 0:
		return ""
	case n > maxChanged:
		return fmt.Sprintf("configuration (%s and %d more)", strings.Join(keys[:maxChanged], ", "), n-maxChanged)
	}
	return fmt.Sprintf("configuration (%s)", strings.Join(keys, ", "))
}

// isClusterConfig reports whether the section environment.kubernetes of a configuration
// applies.
func isClusterConfig(config any) bool {
	root, _ := config.(map[string]any)
	environment, _ := root["environment"].(map[string]any)
	return environment["environment_class"] == "kubernetes"
}

// SameSettings reports whether two configurations in YAML have the same settings that
// affect results.
func SameSettings(a, b []byte) bool { return changedConfig(a, b) == "" }

// AffectsResults reports whether a setting or a group of settings affects what
// an attempt does.
func AffectsResults(key string) bool {
	return !slices.ContainsFunc(ignoredKeys, func(group string) bool {
		return key == group || strings.HasPrefix(key, group+".")
	})
}

// diffKeys appends the paths of settings that differ to keys.
func diffKeys(path string, old, current any, keys *[]string) {
	oldMap, oldIsMap := old.(map[string]any)
	newMap, newIsMap := current.(map[string]any)
	if (!oldIsMap && old != nil) || (!newIsMap && current != nil) || (!oldIsMap && !newIsMap) {
		if !reflect.DeepEqual(old, current) {
			*keys = append(*keys, path)
		}
		return
	}
	for name, value := range oldMap {
		diffKeys(strings.TrimPrefix(path+"."+name, "."), value, newMap[name], keys)
	}
	for name, value := range newMap {
		if _, exists := oldMap[name]; !exists {
			diffKeys(strings.TrimPrefix(path+"."+name, "."), nil, value, keys)
		}
	}
}

// sameContent reports whether two datasets have the same content; names may differ.
func sameContent(a, b datasets.SourceInfo) bool { return a.SHA256 == b.SHA256 }
