package scripted

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// isTrajectory tells a recorded attempt from a script: an object that holds
// messages or says that it is one, or a list whose items have roles.
func isTrajectory(root *yaml.Node) bool {
	if root.Kind == yaml.SequenceNode && len(root.Content) > 0 {
		return root.Content[0].Kind == yaml.MappingNode && has(root.Content[0], "role")
	}
	return root.Kind == yaml.MappingNode && (has(root, "trajectory_format") || has(root, "messages"))
}

func has(n *yaml.Node, name string) bool {
	for key := range pairs(n) {
		if key.Value == name {
			return true
		}
	}
	return false
}

func fromTrajectory(name string, data []byte) (map[string][]reply, error) {
	t, err := trajectories.Parse(name, data)
	if err != nil {
		return nil, err
	}
	var list []reply
	for _, turn := range t.Turns {
		if turn.Role == model.Assistant {
			list = append(list, newReply(spoken(turn)))
		}
	}
	return recorded(name, list)
}

// spoken is a turn as text. Commands that travelled as tool calls become one
// block; they ran one after the other, and so do the lines of a block. The
// text beside them stays unless it holds a block itself: a reply has one.
func spoken(turn trajectories.Turn) string {
	var raw struct {
		ToolCalls []json.RawMessage `json:"tool_calls"`
	}
	if json.Unmarshal(turn.Raw, &raw) != nil || len(raw.ToolCalls) == 0 || len(turn.Commands) == 0 {
		return turn.Content
	}
	block := "```bash\n" + strings.Join(turn.Commands, "\n") + "\n```"
	if turn.Content == "" || strings.Contains(turn.Content, "```") {
		return block
	}
	return turn.Content + "\n\n" + block
}

func fromJournal(name string, data []byte) (map[string][]reply, error) {
	var list []reply
	for r, err := range trajectories.Scan(name, bytes.NewReader(data)) {
		if err != nil {
			return nil, fmt.Errorf("load script: %w", err)
		}
		if r.Type != trajectories.TypeMessage {
			continue
		}
		var m trajectories.Message
		if err := json.Unmarshal(r.Data, &m); err != nil {
			return nil, fmt.Errorf("load script %s: record %d: %w", name, r.ID, err)
		}
		if m.Role == model.Assistant {
			list = append(list, newReply(m.Content))
		}
	}
	return recorded(name, list)
}

// recorded serves any instance: the file is of one, and its user picks which.
func recorded(name string, list []reply) (map[string][]reply, error) {
	if len(list) == 0 {
		return nil, fmt.Errorf("load script %s: the recorded attempt has no replies", name)
	}
	return map[string][]reply{wildcard: list}, nil
}
