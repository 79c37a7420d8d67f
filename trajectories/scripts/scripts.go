// Package scripts reads the replies of a scripted model from a file. The file is a
// script, or a recorded attempt of any agent, whose replies the model repeats in order.
package scripts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strings"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/scripted"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/formats"
)

// Load reads a script, a journal or a trajectory. It fails if the file has more than
// 512 MiB. Errors name the file.
func Load(path string) (*scripted.Script, error) {
	data, err := scripted.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// Parse is Load for data in memory. Errors contain path. Its extension selects the
// format: .jsonl is a journal, .json a script or a trajectory, and any other extension a
// script in YAML.
func Parse(path string, data []byte) (*scripted.Script, error) {
	switch ext := strings.ToLower(filepath.Ext(path)); {
	case ext == ".jsonl":
		return newScript(path, trajectories.Scan(path, bytes.NewReader(data)), false)
	case ext == ".json" && json.Valid(data):
		f, err := formats.Read(path, data)
		if errors.Is(err, formats.ErrUnknownFormat) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("load script %s: %w", path, err)
		}
		return newScript(path, f.Records, true)
	}
	return scripted.Parse(path, data)
}

// newScript returns a script with the replies of a recorded attempt, for any instance.
// For the attempt of a foreign agent, it replaces tool calls by bash calls with the
// commands that the agent ran, since agents accept different tool calls. It keeps tool
// calls that caused a format error, so that they cause the error again, and the tool calls
// of a reply with another number of commands.
func newScript(name string, records iter.Seq2[trajectories.Record, error], foreign bool) (*scripted.Script, error) {
	t, err := trajectories.Fold(records)
	if err != nil {
		return nil, fmt.Errorf("load script %s: %w", name, err)
	}
	var replies []model.Message
	for i, e := range t.Entries {
		if e.Role != model.Assistant {
			continue
		}
		hasFormatError := i+1 < len(t.Entries) && t.Entries[i+1].Cause == trajectories.CauseFormatError
		if calls := e.ToolCalls; foreign && !hasFormatError && len(e.Actions) == len(calls) {
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
