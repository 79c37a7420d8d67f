package runner

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/datasets"
)

// ignoredKeys are settings and groups of settings that do not affect what an
// attempt does: results from before and after a change are comparable.
var ignoredKeys = []string{
	"eval", "replay", "run.workers", "run.attempts", "run.eval", "run.resume_attempts", "run.fsync", "run.keep", "run.max_tries",
	"run.prefetch", "run.image_budget", "run.min_free_disk", "run.pulls_per_minute",
	"run.max_starts", "run.total_cost_limit", "run.total_calls", "run.max_consecutive_provider_failures",
	"model.max_tries", "model.max_wait", "model.requests_per_minute", "model.tokens_per_minute", "model.max_concurrent",
}

// maxChanged bounds the number of settings named.
const maxChanged = 3

// changedConfig describes the settings that differ, for the user; "" if none
// matters. The settings are YAML, as in config.yaml, or JSON, as in headers.
func changedConfig(old, current []byte) string {
	var a, b any
	if yaml.Unmarshal(old, &a) != nil || yaml.Unmarshal(current, &b) != nil {
		return "configuration"
	}
	var keys []string
	diffKeys("", a, b, &keys)
	keys = slices.DeleteFunc(keys, func(key string) bool { return !AffectsResults(key) })
	slices.Sort(keys)
	switch n := len(keys); {
	case n == 0:
		return ""
	case n > maxChanged:
		return fmt.Sprintf("configuration (%s and %d more)", strings.Join(keys[:maxChanged], ", "), n-maxChanged)
	}
	return fmt.Sprintf("configuration (%s)", strings.Join(keys, ", "))
}

// AffectsResults reports whether a setting or a group of settings affects what
// an attempt does.
func AffectsResults(key string) bool {
	return !slices.ContainsFunc(ignoredKeys, func(group string) bool {
		return key == group || strings.HasPrefix(key, group+".")
	})
}

// diffKeys collects the paths of settings that differ.
func diffKeys(path string, a, b any, keys *[]string) {
	left, ok := a.(map[string]any)
	right, ok2 := b.(map[string]any)
	if (!ok && a != nil) || (!ok2 && b != nil) || (!ok && !ok2) {
		if !reflect.DeepEqual(a, b) {
			*keys = append(*keys, path)
		}
		return
	}
	for name, value := range left {
		diffKeys(strings.TrimPrefix(path+"."+name, "."), value, right[name], keys)
	}
	for name, value := range right {
		if _, both := left[name]; !both {
			diffKeys(strings.TrimPrefix(path+"."+name, "."), nil, value, keys)
		}
	}
}

// sameRows compares datasets by content, not by name.
func sameRows(a, b datasets.SourceInfo) bool { return a.SHA256 == b.SHA256 }
