package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/datasets/demo"
	"github.com/minibench/mini/trajectories"
)

// replayGroup is recordings that are replayed alike.
type replayGroup struct {
	cfg    *configs.Resolved
	agent  *agent.Agent
	isDemo bool
	all    []*recording
}

// recordedKeys are the settings that a replay takes from a recording: those that
// say what a command meets within its sandbox. What opens a sandbox to this
// machine or to a network (mounts, forward_env, network, rights) is not among
// them, since a recording may be a stranger's; who wants it says so again.
var recordedKeys = []string{
	"environment.cwd", "environment.env", "environment.timeout", "environment.interpreter", "environment.clean_env",
	"agent.scrub", "agent.patch_exclude", "agent.max_patch_bytes", "agent.observation",
	"tools.files",
}

// recordedContainerKeys are more such settings, that only containers have.
var recordedContainerKeys = []string{
	"environment.image", "environment.memory", "environment.cpus", "environment.pids_limit", "environment.shm_size",
	"environment.tmpfs", "environment.ulimits", "environment.read_only", "environment.user", "environment.platform",
}

// unsetKeys are the values of recorded settings that a journal leaves away where
// they are not set: the defaults of mini replay may be others.
var unsetKeys = map[string]any{
	"environment.clean_env": false, "agent.scrub": false, "agent.patch_exclude": []any{}, "agent.max_patch_bytes": 0, "tools.files": false,
	"environment.read_only": false, "environment.user": "", "environment.platform": "",
}

// prepare finds the sandbox of each recording.
func (o *replayOptions) prepare(ctx context.Context, s Streams, all []*recording) ([]*replayGroup, error) {
	known, err := o.rows(ctx, s, all)
	if err != nil {
		return nil, err
	}
	var groups []*replayGroup
	byKey := map[string]*replayGroup{}
	for _, r := range all {
		if r.failed != nil {
			continue
		}
		r.place(known)
		settings, err := o.settings(r)
		if err != nil {
			return nil, err
		}
		key := fmt.Sprint(r.isDemo, settings)
		if byKey[key] == nil {
			g, err := o.group(r, settings)
			if err != nil {
				return nil, err
			}
			byKey[key] = g
			groups = append(groups, g)
		}
		byKey[key].all = append(byKey[key].all, r)
	}
	return groups, nil
}

// settings are those that are taken from a recording: which, its class decides,
// or the one that is asked for instead.
func (o *replayOptions) settings(r *recording) ([]recordedSetting, error) {
	var settings []recordedSetting
	if class := r.file.Header.EnvironmentClass; class == "docker" || onHost(class) {
		settings = append(settings, recordedSetting{"environment.environment_class", class})
	}
	cfg, err := o.configure(r, settings)
	if err != nil {
		return nil, err
	}
	keys := recordedKeys
	if !onHost(cfg.Environment.Class) {
		keys = slices.Concat(keys, recordedContainerKeys)
	}
	return append(settings, r.settings(keys, cfg.Environment.Env)...), nil
}

// configure resolves the configuration of a recording.
func (o *replayOptions) configure(r *recording, settings []recordedSetting) (*configs.Resolved, error) {
	flags := o.configFlags
	for _, one := range settings {
		layer, err := configs.Setting(r.path, one.key, one.value)
		if err != nil {
			return nil, before(err)
		}
		flags.between = append(flags.between, layer)
	}
	return flags.merge("swebench")
}

// group is for recordings with the same settings.
func (o *replayOptions) group(r *recording, settings []recordedSetting) (*replayGroup, error) {
	cfg, err := o.configure(r, settings)
	if err != nil {
		return nil, err
	}
	if err := o.mayRun(cfg, r); err != nil {
		return nil, err
	}
	a, err := agent.New(cfg.Agent)
	if err != nil {
		return nil, cfg.Locate(err)
	}
	return &replayGroup{cfg: cfg, agent: a, isDemo: r.isDemo}, nil
}

// mayRun refuses to run the commands of a recording on this machine itself,
// unless the user trusts them, and what no container can be.
func (o *replayOptions) mayRun(cfg *configs.Resolved, r *recording) error {
	if cfg.Environment.Class == "local" && !o.yes {
		return usagef("%s: its commands would run on this machine itself, with your rights and outside of any sandbox; "+
			"say --yes if you trust them, or --environment-class docker (or bubblewrap)", r.path)
	}
	_, err := containerConfig(cfg, "")
	return err
}

// recordedSetting is a setting as a recording has it, as JSON.
type recordedSetting struct{ key, value string }

// settings are those that a recording has under these keys. Variables that are
// set alike already are left out: some shipped ones are for some classes only.
func (r *recording) settings(keys []string, vars map[string]string) []recordedSetting {
	var all []recordedSetting
	var config map[string]json.RawMessage
	if json.Unmarshal(r.file.Header.Config, &config) != nil {
		return all // none, or another agent's
	}
	for _, key := range keys {
		section, name, _ := strings.Cut(key, ".")
		var values map[string]any
		if json.Unmarshal(config[section], &values) != nil {
			continue
		}
		value, ok := values[name]
		if unset, known := unsetKeys[key]; !ok && known && r.file.Format == trajectories.Format {
			value, ok = unset, true
		}
		if theirs, isMap := value.(map[string]any); isMap && key == "environment.env" {
			maps.DeleteFunc(theirs, func(name string, text any) bool {
				same, ok := vars[name]
				return text == configs.Hidden || ok && text == same // a secret stands in no file
			})
		}
		text, err := json.Marshal(value)
		if ok && value != nil && err == nil {
			all = append(all, recordedSetting{key, string(text)})
		}
	}
	return all
}

// knownRows are the rows of the demo, and of --subset.
type knownRows struct {
	rows map[string]datasets.Instance
	demo map[string]bool
}

// place gives a recording its row, where one is known. The image that it was made
// in goes before the row's.
func (r *recording) place(known knownRows) {
	if row, ok := known.rows[r.id]; ok {
		row.Image = cmp.Or(r.row.Image, row.Image)
		r.row, r.isDemo = row, known.demo[r.id]
	}
}

// rows finds the rows of the recordings. Those of the demo are always known.
func (o *replayOptions) rows(ctx context.Context, s Streams, all []*recording) (knownRows, error) {
	k := knownRows{rows: map[string]datasets.Instance{}, demo: map[string]bool{}}
	set, err := datasets.Load(ctx, []datasets.Source{datasets.Embedded(demoSubset, demo.Rows())}, datasets.Selection{})
	if err != nil {
		return k, err
	}
	for _, in := range set.Instances {
		k.rows[in.ID], k.demo[in.ID] = in, true
	}
	if len(o.subsets) == 0 {
		return k, nil
	}
	sources, err := o.open(ctx, s)
	if err != nil {
		return k, err
	}
	var ids []string
	for _, r := range all {
		ids = append(ids, regexp.QuoteMeta(r.id))
	}
	// A filter, and not their names: an attempt that is in no row is no mistake.
	set, err = datasets.Load(ctx, sources, datasets.Selection{Filter: "(?:" + strings.Join(ids, "|") + ")$"})
	if err != nil {
		return k, err
	}
	if len(set.Instances) == 0 {
		return k, usagef("none of the attempts is on a row of %s", strings.Join(o.subsets, "+"))
	}
	for _, in := range set.Instances {
		k.rows[in.ID], k.demo[in.ID] = in, o.subsets[0] == demoSubset
	}
	return k, nil
}
