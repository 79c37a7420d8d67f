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

// useSessionModel adds the model of the folder's latest session as a layer below -c and the
// flags. It ignores a missing session; openStored reports that.
func (o *Options) useSessionModel() error {
	folder, err := sessions.Open(filepath.Join(userdirs.StateDir(), "mini", "sessions"), ".")
	if err != nil {
		return nil //nolint:nilerr // openStored reports it
	}
	held, err := folder.OpenLatest()
	if err != nil {
		return nil //nolint:nilerr // openStored reports it
	}
	header, err := trajectories.ReadHeader(held.Journal)
	if closed := held.Close(); err != nil || closed != nil {
		return closed
	}
	address := settings.RecordedSetting(header, "model.base_url")
	for _, key := range modelSettings {
		value, _ := settings.RecordedSetting(header, key).(string)
		// Do not send the user's key to an address that a file in the folder set:
		// use an address only if the metadata of the session confirms it.
		foreign := (key == "model.base_url" || key == "model.api_key_env") && address != held.BaseURL && address != nil
		if value == "" || foreign {
			continue
		}
		layer, err := configs.ParseSetting("--continue", key, strconv.Quote(value))
		if err != nil {
			return err
		}
		o.Defaults = append(o.Defaults, layer)
	}
	return nil
}
