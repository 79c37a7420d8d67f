// Package scripts reads the replies of a scripted model from a file: a script, or
// a recorded attempt of any agent whose replies are given again in order.
package scripts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"path/filepath"
	"strings"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/scripted"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/formats"
)

// Load reads a script, a journal or a trajectory of at most 512 MB. Errors name
// the file.
func Load(path string) (*scripted.Script, error) {
	data, err := scripted.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// Parse reads a file from memory. Its name is in errors, and its extension selects
// the format: .jsonl is a journal, .json a script or a trajectory, and all else a
// script in YAML.
func Parse(path string, data []byte) (*scripted.Script, error) {
	switch ext := strings.ToLower(filepath.Ext(path)); {
	case ext == ".jsonl":
		return recorded(path, trajectories.Scan(path, bytes.NewReader(data)), false)
	case ext == ".json" && isTrajectory(data):
		f, err := formats.Read(path, data)
		if err != nil {
			return nil, fmt.Errorf("load script %s: %w", path, err)
		}
		return recorded(path, f.Records, true)
	}
	return scripted.Parse(path, data)
}

// isTrajectory reports whether JSON is a recorded attempt rather than a script:
// an object with messages or a trajectory format, or a list of items with roles.
func isTrajectory(data []byte) bool {
	var object map[string]json.RawMessage
	if json.Unmarshal(data, &object) == nil {
		return object["trajectory_format"] != nil || object["messages"] != nil
	}
	var list []json.RawMessage
	if json.Unmarshal(data, &list) != nil || len(list) == 0 {
		return false
	}
	var first map[string]json.RawMessage
	return json.Unmarshal(list[0], &first) == nil && first["role"] != nil
}

// recorded returns the replies of a recorded attempt, for any instance. Calls
// that got a format error are kept, to get it again. Other calls of a foreign
// agent are replaced by the commands it ran, since agents accept different calls,
// for example ones without a name.
func recorded(name string, records iter.Seq2[trajectories.Record, error], foreign bool) (*scripted.Script, error) {
	t, err := trajectories.BuildTranscript(records)
	if err != nil {
		return nil, fmt.Errorf("load script %s: %w", name, err)
	}
	var replies []model.Message
	for i, e := range t.Entries {
		if e.Role != model.Assistant {
			continue
		}
		refused := i+1 < len(t.Entries) && t.Entries[i+1].Cause == trajectories.CauseFormatError
		if calls := e.ToolCalls; foreign && !refused && len(e.Actions) == len(calls) {
			for k := range calls {
				id := calls[k].ID
				calls[k] = scripted.BashCall(e.Actions[k])
				calls[k].ID = id
			}
		}
		replies = append(replies, model.Message{Content: e.Content, ToolCalls: e.ToolCalls})
	}
	if len(replies) == 0 {
		return nil, fmt.Errorf("load script %s: the recorded attempt has no replies", name)
	}
	return scripted.New(name, replies), nil
}
