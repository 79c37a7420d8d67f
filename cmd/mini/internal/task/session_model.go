package task

import (
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

// useSessionModel adds the modelSettings of the folder's latest session as layers below -c and the
// flags. It ignores a session that it cannot read, which openStored reports later.
func (o *Options) useSessionModel() error {
	store, err := sessions.Open(filepath.Join(userdirs.StateDir(), "mini", "sessions"), ".")
	if err != nil {
		return nil //nolint:nilerr // openStored reports it
	}
	stored, err := store.OpenLatest()
	if err != nil {
		return nil //nolint:nilerr // openStored reports it
	}
	header, err := trajectories.ReadHeader(stored.Journal)
	if closeErr := stored.Close(); err != nil || closeErr != nil {
		return closeErr
	}
	baseURL := settings.RecordedSetting(header, "model.base_url")
	for _, key := range modelSettings {
		value, _ := settings.RecordedSetting(header, key).(string)
		// Do not send the user's key to an address that a file in the folder set:
		// use an address only if the metadata of the session confirms it.
		isUnconfirmed := (key == "model.base_url" || key == "model.api_key_env") && baseURL != stored.BaseURL && baseURL != nil
		if value == "" || isUnconfirmed {
			continue
		}
		layer, err := configs.ParseSetting("--continue", key, strconv.Quote(value))
		if err != nil {
			return err
		}
		o.RecordedLayers = append(o.RecordedLayers, layer)
	}
	return nil
}
