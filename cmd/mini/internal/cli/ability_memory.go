package cli

import (
	"context"
	"path/filepath"

	"github.com/minibench/mini/agent/memory"
	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/cmd/mini/internal/sessions"
	"github.com/minibench/mini/configs"
)

// notesName is the file of notes.
const notesName = "notes.json"

// memoryTools are notes, goals and what was said earlier.
type memoryTools struct {
	memory.Config
	recall bool
}

// newMemoryTools makes notes, goals and what was taken out of the conversation; nil where they are off.
func newMemoryTools(_ context.Context, cfg *configs.Resolved) (ability, error) {
	m := memoryTools{Config: cfg.Memory, recall: cfg.Tools.Recall}
	if isOff(m.Config) && !m.recall {
		return nil, nil //nolint:nilnil // nothing is configured
	}
	return m, nil
}

func (m memoryTools) tools(p toolPlace) ([]tools.Tool, error) {
	var list []tools.Tool
	switch m.Notes {
	case memory.Workspace, memory.Attempt:
		path, err := m.file(p)
		if err != nil {
			return nil, err
		}
		list = append(list, memory.NoteTools(memory.NewStore(path))...)
	}
	if m.Goals {
		list = append(list, memory.NewGoals())
	}
	if m.recall {
		list = append(list, memory.Recall{})
	}
	return list, nil
}

// file is where an attempt's notes are. Without a folder of the user's, notes are
// the attempt's: nothing goes from one instance to another.
func (m memoryTools) file(p toolPlace) (string, error) {
	if m.Notes == memory.Workspace && p.workspace != "" {
		return workspaceNotes(p.workspace)
	}
	return p.file(notesName), nil
}

// workspaceNotes is the file with the notes of a folder.
func workspaceNotes(folder string) (string, error) {
	_, key, err := sessions.Key(folder)
	if err != nil {
		return "", err
	}
	return filepath.Join(stateDir(), "mini", "notes", key, notesName), nil
}
