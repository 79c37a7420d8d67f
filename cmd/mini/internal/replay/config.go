package replay

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/settings"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/demo"
	datasetopen "github.com/minibench/mini/datasets/open"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/trajectories"
)

// group is a set of recordings with the same settings.
type group struct {
	cfg        *configs.Resolved
	agent      *agent.Agent
	isDemo     bool
	recordings []*recording
}

// recordedKeys are the settings that a replay takes from a recording: those that
// affect commands within the sandbox. Recordings are untrusted, so the list does not
// contain settings that open the sandbox to this machine or to a network (mounts,
// forward_env, network, capabilities). The user can set those again.
var recordedKeys = []string{
	"environment.cwd", "environment.env", "environment.timeout", "environment.interpreter", "environment.clean_env",
	"agent.scrub", "agent.patch_exclude", "agent.max_patch_bytes", "agent.observation",
	"tools.files",
}

// recordedContainerKeys are the settings that a replay in containers takes from a
// recording in addition to recordedKeys.
var recordedContainerKeys = []string{
	"environment.image", "environment.memory", "environment.cpus", "environment.pids_limit", "environment.shm_size",
	"environment.tmpfs", "environment.ulimits", "environment.read_only", "environment.user", "environment.platform",
}

// unsetValues are the values of settings that a journal omits if they are not set. A
// replay uses them for omitted settings, because its own defaults may differ.
var unsetValues = map[string]any{
	"environment.clean_env": false, "agent.scrub": false, "agent.patch_exclude": []any{}, "agent.max_patch_bytes": 0, "tools.files": false,
	"environment.read_only": false, "environment.user": "", "environment.platform": "",
}

// prepare groups the recordings by their settings. It leaves out recordings that cannot be
// replayed.
func (o *Options) prepare(ctx context.Context, a *app.App, recordings []*recording) ([]*group, error) {
	rowsByID, err := o.rows(ctx, a, recordings)
	if err != nil {
		return nil, err
	}
	var groups []*group
	byKey := map[string]*group{}
	for _, r := range recordings {
		if r.err != nil {
			continue
		}
		r.setRow(rowsByID)
		settings, err := o.settings(r)
		if err != nil {
			return nil, err
		}
		key := fmt.Sprint(r.isDemo, settings)
		g := byKey[key]
		if g == nil {
			g = &group{isDemo: r.isDemo}
			if g.cfg, err = o.configure(r, settings); err != nil {
				return nil, err
			}
			if g.agent, err = agent.New(g.cfg.Agent); err != nil {
				return nil, g.cfg.Locate(err)
			}
			byKey[key] = g
			groups = append(groups, g)
		}
		g.recordings = append(g.recordings, r)
	}
	return groups, nil
}

// settings returns the settings that a replay takes from a recording. They depend on
// the environment class: that of the flags, or else the recorded one.
func (o *Options) settings(r *recording) ([]recordedSetting, error) {
	var settings []recordedSetting
	if class := r.file.Header.EnvironmentClass; class == "docker" || configs.UsesCluster(class) || envopen.IsHostClass(class) {
		settings = append(settings, recordedSetting{"environment.environment_class", class})
	}
	overlay, err := o.overlay(r, settings)
	if err != nil {
		return nil, err
	}
	keys := recordedKeys
	if !envopen.IsHostClass(overlay.Value("environment.environment_class")) {
		keys = slices.Concat(keys, recordedContainerKeys)
	}
	var vars map[string]string
	if err := overlay.Decode("environment.env", &vars); err != nil {
		return nil, err
	}
	return append(settings, r.settings(keys, vars)...), nil
}

// configure returns the configuration for a recording. It returns an error if the recording's
// commands would run outside of a sandbox and --yes is not set, or if a setting is invalid.
func (o *Options) configure(r *recording, settings []recordedSetting) (*configs.Resolved, error) {
	overlay, err := o.overlay(r, settings)
	if err != nil {
		return nil, err
	}
	cfg, err := overlay.Check()
	if err != nil {
		return nil, err
	}
	if cfg.Environment.Class == "local" && !o.yes {
		return nil, usage.Errorf("%s: its commands would run on this machine without a sandbox; "+
			"pass --yes if you trust them, or --environment-class docker (or bubblewrap)", r.path)
	}
	_, err = envopen.ContainerConfig(cfg, "")
	return cfg, err
}

// overlay returns the layers for a recording.
func (o *Options) overlay(r *recording, settings []recordedSetting) (*configs.Overlay, error) {
	flags := o.Flags
	for _, setting := range settings {
		layer, err := configs.ParseSetting(r.path, setting.key, setting.value)
		if err != nil {
			return nil, usage.Wrap(err)
		}
		flags.RecordedLayers = append(flags.RecordedLayers, layer)
	}
	return flags.Overlay("swebench")
}

// recordedSetting is a setting of a recording. The value is JSON.
type recordedSetting struct{ key, value string }

// settings returns the recorded values of keys. For keys that a journal of mini omits, it
// uses unsetValues. Of environment.env, it omits redacted secrets and the variables that
// vars sets to the same value, so that mini still recognizes its own defaults, some of
// which apply to one environment class only.
func (r *recording) settings(keys []string, vars map[string]string) []recordedSetting {
	var recorded []recordedSetting
	for _, key := range keys {
		value := settings.RecordedSetting(r.file.Header, key)
		if unset, known := unsetValues[key]; value == nil && known && r.file.Format == trajectories.Format {
			value = unset
		}
		if recordedVars, isMap := value.(map[string]any); isMap && key == "environment.env" {
			maps.DeleteFunc(recordedVars, func(name string, text any) bool {
				current, ok := vars[name]
				return text == configs.RedactedValue || ok && text == current // recordings contain no secrets
			})
		}
		text, err := json.Marshal(value)
		if value != nil && err == nil {
			recorded = append(recorded, recordedSetting{key, string(text)})
		}
	}
	return recorded
}

// knownRow is a row of the demo or of --subset.
type knownRow struct {
	datasets.Instance
	isDemo bool
}

// setRow sets the row of a recording if it is known. The recorded image takes
// precedence over the row's.
func (r *recording) setRow(known map[string]knownRow) {
	if row, ok := known[r.id]; ok {
		row.Image = cmp.Or(r.row.Image, row.Image)
		r.row, r.isDemo = row.Instance, row.isDemo
	}
}

// rows loads the rows of the demo, and those of --subset that the recordings are on, by id.
func (o *Options) rows(ctx context.Context, a *app.App, recordings []*recording) (map[string]knownRow, error) {
	known := map[string]knownRow{}
	set, err := datasets.Load(ctx, []datasets.Source{datasets.Embedded(datasetopen.Demo, demo.Rows())}, datasets.AllRows)
	for _, in := range set.Instances {
		known[in.ID] = knownRow{in, true}
	}
	if err != nil || len(o.datasets.Subsets) == 0 {
		return known, err
	}
	var ids []string
	for _, r := range recordings {
		ids = append(ids, r.id)
	}
	set, err = o.datasets.Load(ctx, a.Streams, datasets.Existing(ids))
	for _, in := range set.Instances {
		known[in.ID] = knownRow{in, o.datasets.Subsets[0] == datasetopen.Demo}
	}
	if err == nil && len(set.Instances) == 0 {
		err = usage.Errorf("no attempt is on a row of %s", strings.Join(o.datasets.Subsets, "+"))
	}
	return known, err
}
