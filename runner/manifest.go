package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/trajectories"
)

// StartSession writes run.json and config.yaml for a new session. changed describes
// the differences from the previous session in settings, dataset and capabilities
// that affect results.
func (f *Folder) StartSession(m runs.Manifest, config []byte) (changed []string, err error) {
	old, err := f.readManifest()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(config)
	m.Format = trajectories.Format
	m.ConfigHash = hex.EncodeToString(sum[:])
	m.Sessions = append(old.Sessions, runs.Session{
		MiniVersion: m.MiniVersion, ConfigHash: m.ConfigHash, InstanceCount: m.Dataset.Selected,
		Editions: m.Dataset.Editions, Started: time.Now(),
	})
	m.Images = old.Images
	oldConfig, readErr := f.Root.ReadFile(filepath.Join(f.Dir, configFile), runs.MaxManifest)
	if err := f.Root.WriteFile(filepath.Join(f.Dir, configFile), config); err != nil {
		return nil, fmt.Errorf("write %s: %w", configFile, err)
	}
	sameRows := func(a, b datasets.SourceInfo) bool { return a.SHA256 == b.SHA256 } // names may differ
	if old.ConfigHash != "" && old.ConfigHash != m.ConfigHash {
		difference := "configuration"
		if readErr == nil {
			difference = changedConfig(oldConfig, config)
		}
		if difference != "" {
			changed = append(changed, difference)
		}
	}
	if len(old.Sessions) == 0 {
		return changed, f.writeJSON(runFile, m)
	}
	if !slices.EqualFunc(old.Dataset.Editions, m.Dataset.Editions, sameRows) {
		changed = append(changed, "dataset ("+old.Dataset.Name+", now "+m.Dataset.Name+")")
	}
	changed = append(changed, runs.ChangedCapabilities(old.Capabilities, m.Capabilities)...)
	return changed, f.writeJSON(runFile, m)
}

// HasManifest reports whether the folder has a run.json.
func (f *Folder) HasManifest() bool {
	_, err := os.Lstat(filepath.Join(f.Dir, runFile))
	return err == nil
}

// EndSession adds the summary, end time and images of the session to run.json.
func (f *Folder) EndSession(s runs.Summary) error {
	m, err := f.readManifest()
	if err != nil {
		return err
	}
	if n := len(m.Sessions); n > 0 {
		now := time.Now()
		m.Sessions[n-1].Ended, m.Sessions[n-1].Summary = &now, &s
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.Images == nil {
		m.Images = map[string]string{}
	}
	maps.Copy(m.Images, f.images)
	return f.writeJSON(runFile, m)
}

func (f *Folder) readManifest() (runs.Manifest, error) {
	var m runs.Manifest
	data, err := f.Root.ReadFile(filepath.Join(f.Dir, runFile), runs.MaxManifest)
	if errors.Is(err, os.ErrNotExist) {
		return m, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		return m, fmt.Errorf("read %s: %w; move it away to continue without it, or choose another folder with -o", filepath.Join(f.Dir, runFile), err)
	}
	return m, nil
}

// ignoredKeys are settings, and groups of settings, that do not affect what an
// attempt does. Results from before and after a change of them are comparable.
var ignoredKeys = []string{
	"eval", "replay", "run.workers", "run.attempts", "run.eval", "run.resume_attempts", "run.fsync", "run.shared", "run.keep", "run.max_tries",
	"run.prefetch", "run.image_budget", "run.min_free_disk", "run.pulls_per_minute",
	"run.max_starts", "run.reward_url", "run.reward_body", "run.total_cost_limit", "run.total_calls", "run.max_consecutive_provider_failures",
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
	root, _ := currentValue.(map[string]any)
	environment, _ := root["environment"].(map[string]any)
	usesCluster := environment["environment_class"] == "kubernetes"
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
