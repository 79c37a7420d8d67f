package cli

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/sessions"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/trajectories"
)

// spoken are the settings of a session that decide who answers in it, and how.
var spoken = []string{
	"model.model_class", "model.model_name", "model.base_url", "model.api_key_env", "model.replies", "agent.protocol",
}

// sameModel lays the model of the folder's last session below -c and the flags: to
// go on is to go on with whom one spoke. Where there is no such session, recall
// says so.
func (o *taskOptions) sameModel() error {
	folder, err := sessions.In(filepath.Join(stateDir(), "mini", "sessions"), ".")
	if err != nil {
		return nil //nolint:nilerr // recall says so
	}
	held, err := folder.Newest()
	if err != nil {
		return nil //nolint:nilerr // recall says so
	}
	header, err := trajectories.ReadHeader(held.Journal)
	if closed := held.Close(); err != nil || closed != nil {
		return closed
	}
	var config struct{ Model, Agent map[string]any }
	if json.Unmarshal(header.Config, &config) != nil {
		return nil //nolint:nilerr // a journal without settings says of nobody who it was
	}
	for _, key := range spoken {
		section, name, _ := strings.Cut(key, ".")
		value, _ := map[string]map[string]any{"model": config.Model, "agent": config.Agent}[section][name].(string)
		// The journal may lie in the folder, or have the address of its .env: your key
		// goes on to the address only that the note of the session has.
		foreign := (name == "base_url" || name == "api_key_env") && config.Model["base_url"] != held.BaseURL && config.Model["base_url"] != nil
		if value == "" || foreign {
			continue
		}
		layer, err := configs.Setting("--continue", key, strconv.Quote(value))
		if err != nil {
			return err
		}
		o.between = append(o.between, layer)
	}
	return nil
}
