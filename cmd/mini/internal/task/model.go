package task

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/minibench/mini/cmd/mini/internal/config"
	"github.com/minibench/mini/cmd/mini/internal/settings"
	"github.com/minibench/mini/cmd/mini/internal/task/sessions"
	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/env"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/userdirs"
	"github.com/minibench/mini/model"
	modelopen "github.com/minibench/mini/model/open"
	"github.com/minibench/mini/model/route"
	"github.com/minibench/mini/trajectories"
)

// modelSettings are the settings of a session that determine its model and protocol.
var modelSettings = []string{
	"model.model_class", "model.model_name", "model.base_url", "model.api_key_env", "model.replies", "agent.protocol",
}

// useSessionSettings adds the modelSettings and the restored settings of the session to resume as
// layers below -c and the flags. It ignores a session that it cannot read, which openStored reports
// later.
func (o *Options) useSessionSettings(w io.Writer) error {
	store, err := sessions.Open(filepath.Join(userdirs.StateDir(), "mini", "sessions"), ".")
	if err != nil {
		return nil //nolint:nilerr // openStored reports it
	}
	stored, err := store.Open(o.session)
	if err != nil {
		return nil //nolint:nilerr // openStored reports it
	}
	header, err := trajectories.ReadHeader(stored.Journal)
	if closeErr := stored.Close(); err != nil || closeErr != nil {
		return closeErr
	}
	recorded := func(key string) any { return settings.RecordedSetting(header, key) }
	if change := lastModelChange(stored.Journal); change != nil {
		recorded = func(key string) any {
			if value, ok := change.Settings[key]; ok {
				return value
			}
			return settings.RecordedSetting(header, key)
		}
	}
	baseURL := recorded("model.base_url")
	for _, key := range modelSettings {
		value, _ := recorded(key).(string)
		// Do not send the user's key to an address that a file in the folder set:
		// use an address only if the metadata of the session confirms it.
		isUnconfirmed := (key == "model.base_url" || key == "model.api_key_env") && baseURL != stored.BaseURL && baseURL != nil && baseURL != ""
		if value == "" || isUnconfirmed {
			continue
		}
		layer, err := configs.ParseSetting("--continue", key, strconv.Quote(value))
		if err != nil {
			return err
		}
		o.RecordedLayers = append(o.RecordedLayers, layer)
	}
	return o.restoreSettings(w, header)
}

// lastModelChange returns the last switch of the model in a journal; nil if there is none or the
// journal is damaged, which openStored reports.
func lastModelChange(path string) *trajectories.ModelChange {
	a, err := trajectories.ForDisplay.Fold(trajectories.Read(path))
	if err != nil {
		return nil
	}
	return a.Model
}

// switchModel makes the named model answer the next steps, by the rules of -m. It implements
// chat.Config.SwitchModel.
func (t *session) switchModel(ctx context.Context, name string) (string, error) {
	if t.cfg.Model.Route.Kind != "" {
		return "", errors.New("several models answer by turns (model.route)")
	}
	layer, err := configs.ParseSetting("/model", "model.model_name", strconv.Quote(name))
	if err != nil {
		return "", err
	}
	flags := t.options.Flags
	flags.TopLayers = append(slices.Clip(flags.TopLayers), layer)
	cfg, err := t.app.Config(ctx, &flags, config.BuiltinConfigByKind["task"])
	if err != nil {
		return "", err
	}
	cfg.Model.Stream = t.cfg.Model.Stream
	models, err := modelopen.New(cfg, false, []datasets.Instance{t.instance}, t.models.Limits)
	if err != nil {
		return "", err
	}
	next, err := models.For(t.instance)
	if err != nil {
		return "", err
	}
	used, change := modelopen.Name(cfg), modelChange(cfg)
	if err := t.recordModel(change); err != nil {
		return "", err
	}
	t.modelSwitch.Set(route.Named{Name: used, Model: next})
	t.modelCfg = cfg
	t.options.TopLayers = flags.TopLayers // for the session of /new
	return used, settings.PrintCostNote(t.Err, cfg)
}

// modelList is the list of models of the server at an address.
type modelList struct {
	url    string
	names  []string
	server string
	err    error
}

// modelLister returns a function that lists the models of the current model's server and asks each server once;
// nil for a script or a route. It implements chat.Config.ListModels: the chat calls it and switchModel one at
// a time.
func (t *session) modelLister() func(context.Context) ([]string, string, error) {
	if t.cfg.Model.Class == "scripted" || t.cfg.Model.Route.Kind != "" {
		return nil
	}
	return func(ctx context.Context) ([]string, string, error) {
		key, err := configs.ModelKey(t.modelCfg)
		if err != nil {
			return nil, "", err
		}
		l := &t.modelList
		if u := settings.ModelsURL(t.modelCfg.Model); l.url != u {
			l.names, l.server, l.err = settings.ListModels(ctx, t.modelCfg.Model, key)
			if l.url = u; l.err != nil {
				l.url = "" // the next time it may answer
			}
		}
		return l.names, l.server, l.err
	}
}

// returnToModel tells the user that a model refused its first call, and records the model that
// answers in its place. It implements route.Route.OnDrop.
func (t *session) returnToModel(dropped, used route.Named, err error) {
	t.chat.ModelRefused(dropped.Name, used.Name, err)
	t.journalMu.Lock()
	change := t.modelChanges[used.Name]
	t.journalMu.Unlock()
	if err := t.recordModel(change); err != nil {
		t.frontend.ShowNotice(chat.Notice{Text: "The model is not recorded: " + err.Error(), IsError: true})
	}
}

// modelChange describes the model of a configuration for the journal.
func modelChange(cfg *configs.Resolved) trajectories.ModelChange {
	m := cfg.Model
	return trajectories.ModelChange{Name: modelopen.Name(cfg), Settings: map[string]string{
		"model.model_class": m.Class, "model.model_name": m.Name, "model.base_url": m.BaseURL,
		"model.api_key_env": m.APIKeyEnv, "model.replies": m.Replies,
	}}
}

// recordModel records a model in the journal, for a later session too. Before the journal exists,
// it keeps the record for setJournal.
func (t *session) recordModel(change trajectories.ModelChange) error {
	t.journalMu.Lock()
	defer t.journalMu.Unlock()
	t.modelChanges[change.Name] = change
	if t.journal == nil {
		t.modelChange = &change
		return nil
	}
	_, err := t.journal.Append(trajectories.TypeModel, change)
	return err
}

// firstModel returns the name of the model of the first step.
func (t *session) firstModel() string {
	t.journalMu.Lock()
	defer t.journalMu.Unlock()
	if t.modelChange != nil {
		return t.modelChange.Name
	}
	return modelopen.Name(t.cfg)
}

// setJournal sets the journal of the attempt, and records a switch of the model before it.
func (t *session) setJournal(j *trajectories.Journal) error {
	t.journalMu.Lock()
	defer t.journalMu.Unlock()
	t.journal = j
	if t.modelChange == nil {
		return nil
	}
	_, err := j.Append(trajectories.TypeModel, *t.modelChange)
	return err
}

// switchedModels is t.models with a model that the user can switch.
type switchedModels struct{ *session }

// For implements runner.Models.
func (s switchedModels) For(datasets.Instance) (model.Model, error) { return s, nil }

// Query implements model.Model. The user sees the retries.
func (s switchedModels) Query(ctx context.Context, messages []model.Message) (model.Reply, error) {
	return s.modelSwitch.Query(model.WithRetries(ctx, s.chat.ModelRetries), messages)
}

// SummaryModel implements runner.SummaryModels.
func (s switchedModels) SummaryModel(in datasets.Instance) (model.Model, error) {
	return s.models.SummaryModel(in)
}

// execute runs a command of the user. Before the agent starts, it starts a sandbox for the command,
// if the sandbox is on this machine. It implements chat.Executor.
func (t *session) execute(ctx context.Context, script string, onOutput func([]byte)) (res env.Result, err error) {
	sandbox := t.sandbox
	if sandbox == nil {
		if !envopen.IsHostClass(t.sandboxes.Class) {
			return res, chat.ErrNotStarted
		}
		if sandbox, err = t.sandboxes.Start(ctx, t.instance); err != nil {
			return res, err
		}
		defer func() { err = errors.Join(err, sandbox.Close(context.WithoutCancel(ctx))) }()
	}
	command := t.agent.Command(script)
	command.SubmissionMarkers, command.OnOutput = nil, onOutput
	res, err = sandbox.Execute(ctx, command)
	for _, p := range res.Background {
		t.processes.add(p.PID)
	}
	return res, err
}

// noNewReason says why /new cannot begin another conversation; empty if it can.
func (t *session) noNewReason() string {
	switch {
	case t.options.output != "":
		return "/new needs files of its own, and -o names those of this conversation; start mini again."
	case t.options.events != "":
		return "/new needs events of its own, and --events is for those of this conversation; start mini again."
	}
	return ""
}
