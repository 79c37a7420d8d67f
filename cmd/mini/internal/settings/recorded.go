package settings

import (
	"encoding/json"
	"strings"

	"github.com/minibench/mini/trajectories"
)

// RecordedSetting returns a setting from the header of a journal, or nil.
func RecordedSetting(h trajectories.Header, key string) any {
	var config map[string]any
	_ = json.Unmarshal(h.Config, &config) // may be missing or of another agent
	section, name, _ := strings.Cut(key, ".")
	values, _ := config[section].(map[string]any)
	return values[name]
}
