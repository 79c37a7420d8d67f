package runner

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/datasets"
)

// apart are the settings, or groups of them, that change how a run goes on and
// not what its instances are asked: results from before and after belong
// together.
var apart = []string{
	"eval", "replay", "run.workers", "run.attempts", "run.eval", "run.resume_attempts", "run.fsync", "run.keep", "run.max_tries",
	"run.prefetch", "run.image_budget", "run.min_free_disk", "run.pulls_per_minute",
	"run.max_starts", "run.total_cost_limit", "run.total_calls", "run.max_consecutive_provider_failures",
	"model.max_tries", "model.max_wait", "model.requests_per_minute", "model.tokens_per_minute", "model.max_concurrent",
}

// maxChanged bounds the settings that are named.
const maxChanged = 3

// changedConfig says which settings differ, for people: "" where none does
// that matters. They are YAML, as in config.yaml, or JSON, as in headers.
func changedConfig(old, now []byte) string {
	var a, b any
	if yaml.Unmarshal(old, &a) != nil || yaml.Unmarshal(now, &b) != nil {
		return "configuration"
	}
	var keys []string
	differ("", a, b, &keys)
	keys = slices.DeleteFunc(keys, func(key string) bool {
		return slices.ContainsFunc(apart, func(group string) bool {
			return key == group || strings.HasPrefix(key, group+".")
		})
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

// differ collects the paths of what is different, as deep as there are settings
// in settings.
func differ(path string, a, b any, keys *[]string) {
	left, ok := a.(map[string]any)
	right, ok2 := b.(map[string]any)
	if (!ok && a != nil) || (!ok2 && b != nil) || (!ok && !ok2) {
		if !reflect.DeepEqual(a, b) {
			*keys = append(*keys, path)
		}
		return
	}
	for name, value := range left {
		differ(strings.TrimPrefix(path+"."+name, "."), value, right[name], keys)
	}
	for name, value := range right {
		if _, both := left[name]; !both {
			differ(strings.TrimPrefix(path+"."+name, "."), nil, value, keys)
		}
	}
}

// sameRows goes by the bytes, whatever they are called.
func sameRows(a, b datasets.Edition) bool { return a.SHA256 == b.SHA256 }
