package scripted

import (
	"bytes"
	"fmt"

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
	for i, turn := range t.Turns {
		if turn.Role != model.Assistant {
			continue
		}
		refused := i+1 < len(t.Turns) && t.Turns[i+1].Interrupt == "FormatError"
		list = append(list, asked(newReply(turn.Content), calls(turn, refused)))
	}
	return recorded(name, list)
}

// calls are those of a turn: as they stand there if they were refused, so that
// they will be again; else as what was run of them. Agents differ in what they
// let pass, a call without a name for instance.
func calls(turn trajectories.Turn, refused bool) []model.Call {
	if refused || len(turn.Commands) != len(turn.Calls) {
		return turn.Calls
	}
	var run []model.Call
	for i, c := range turn.Calls {
		clean := callOf(turn.Commands[i])
		clean.ID = c.ID
		run = append(run, clean)
	}
	return run
}

func fromJournal(name string, data []byte) (map[string][]reply, error) {
	t, err := trajectories.Gather(trajectories.Scan(name, bytes.NewReader(data)))
	if err != nil {
		return nil, fmt.Errorf("load script %s: %w", name, err)
	}
	var list []reply
	for _, e := range t.Entries {
		if e.Role == model.Assistant {
			list = append(list, asked(newReply(e.Content), e.Calls))
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
