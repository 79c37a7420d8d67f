package task

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/config"
	"github.com/minibench/mini/configs"
	modelopen "github.com/minibench/mini/model/open"
	"github.com/minibench/mini/runner/setup"
	"github.com/minibench/mini/trajectories"
)

// restoredSettings are the sections and keys that a resumed session takes from its journal. The
// journal may be in a folder that others write to, so the list does not contain settings that
// start programs on this machine, connect to servers or relax the policy.
var restoredSettings = []string{
	"agent", "memory", "agents", "model.model_kwargs", "skills.use", "tools.files", "tools.recall", "tools.timeout", "tools.max_output",
	"environment.timeout",
}

// ignoredSettings are sections and keys that do not matter to the conversation, that the mode of the call
// implies, or that modelSettings has.
var ignoredSettings = append([]string{"run", "model.stream", "agent.template_engine", "agent.plain_reply"}, modelSettings...)

const costLimitKey = "agent.cost_limit"

// restoreSettings adds the settings that a session was recorded with as layers below -c and the
// flags, and prints the names of those that it does not restore.
func (o *Options) restoreSettings(w io.Writer, header trajectories.Header) error {
	builtin := config.BuiltinConfigByKind["task"]
	overlay, err := o.Overlay(builtin)
	if err != nil {
		return nil //nolint:nilerr // resolveConfig reports it
	}
	cfg, err := overlay.Check()
	if err != nil {
		return nil //nolint:nilerr // resolveConfig reports it
	}
	now, err := setup.NewHeader(cfg, cfg.Environment.Class)
	if err != nil {
		return err
	}
	recorded, current := settingsOf(header), settingsOf(now)
	layers := slices.Clip(o.RecordedLayers)
	var missing []string
	costLimit := -1 // index of its layer
	for _, key := range slices.Sorted(maps.Keys(recorded)) {
		value := recorded[key]
		if contains(ignoredSettings, key) || reflect.DeepEqual(value, current[key]) {
			continue
		}
		text, err := json.Marshal(value)
		isFile := key == "agents.profiles" && strings.ContainsAny(string(text), `./`) // it may name a server
		if err == nil && contains(restoredSettings, key) && !isFile && !strings.Contains(string(text), configs.RedactedValue) {
			var layer configs.Layer
			if layer, err = configs.ParseSetting(o.resumeFlag(), key, string(text)); err == nil {
				if key == costLimitKey {
					costLimit = len(layers)
				}
				layers = append(layers, layer)
				continue
			}
		}
		if origin, isSet := cfg.Origin(key); !isSet || origin.IsBuiltin() { // the user may have set another value since
			missing = append(missing, key)
		}
	}
	before := o.RecordedLayers
	o.RecordedLayers = layers
	if overlay, err = o.Overlay(builtin); err == nil {
		cfg, err = overlay.Check()
	}
	if err == nil && costLimit >= 0 {
		if _, limitErr := modelopen.CheckCostLimits(cfg); limitErr != nil { // it has no effect, and must not end mini
			o.RecordedLayers = slices.Delete(layers, costLimit, costLimit+1)
			missing = append(missing, costLimitKey)
		}
	}
	if err != nil {
		o.RecordedLayers = before
		_, err = fmt.Fprintf(w, "mini: warning: the settings of the session are not restored: %s\n", cmdutil.Sanitize(err.Error()))
		return err
	}
	if len(missing) > 0 {
		_, err = fmt.Fprintf(w, "mini: settings of the session that are not restored, so pass them again: %s\n", cmdutil.Sanitize(strings.Join(missing, ", ")))
	}
	return err
}

// settingsOf returns the settings of a journal's header by their dotted keys of two elements. The
// section agent has only what journals of mini have: no mode, whitelist or paths of prompts.
func settingsOf(header trajectories.Header) map[string]any {
	var sections map[string]map[string]any
	_ = json.Unmarshal(header.Config, &sections) // it may be missing, or that of another agent
	var own struct {
		Agent agent.Config `json:"agent"`
	}
	delete(sections, "agent")
	if json.Unmarshal(header.Config, &own) == nil {
		text, _ := json.Marshal(own)
		_ = json.Unmarshal(text, &sections)
	}
	all := map[string]any{}
	for section, values := range sections {
		for name, value := range values {
			all[section+"."+name] = value
		}
	}
	return all
}

// contains reports whether a list has a key or its section.
func contains(list []string, key string) bool {
	section, _, _ := strings.Cut(key, ".")
	return slices.Contains(list, key) || slices.Contains(list, section)
}
