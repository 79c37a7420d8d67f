package settings

import (
	"encoding/json"
	"strings"

	"github.com/minibench/mini/trajectories"
)

// RecordedSetting returns the value of a setting from the header of a journal, or nil if the header
// does not contain it.
func RecordedSetting(h trajectories.Header, key string) any {
	var config map[string]any
	_ = json.Unmarshal(h.Config, &config) // the configuration may be missing, or that of another agent
	section, name, _ := strings.Cut(key, ".")
	values, _ := config[section].(map[string]any)
	return values[name]
}
