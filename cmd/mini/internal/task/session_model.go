package task

import (
	"encoding/json"
	"io"
	"path/filepath"
	"strconv"

	"github.com/minibench/mini/cmd/mini/internal/settings"
	"github.com/minibench/mini/cmd/mini/internal/task/sessions"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/userdirs"
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
func lastModelChange(path string) (last *trajectories.ModelChange) {
	for r, err := range trajectories.Read(path) {
		if err != nil {
			return nil
		}
		if r.Type == trajectories.TypeModel {
			last = &trajectories.ModelChange{}
			if json.Unmarshal(r.Data, last) != nil {
				return nil
			}
		}
	}
	return last
}
