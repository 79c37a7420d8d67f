package setup

import (
	"context"
	"path/filepath"

	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/agent/tools/memory"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/userdirs"
)

// notesName is the name of the file with notes.
const notesName = "notes.json"

// memoryTools are the tools for notes, goals and the recall of compacted messages.
type memoryTools struct {
	memory.Config
	recall bool
}

// newMemoryTools returns the memory tools, or nil if they are off.
func newMemoryTools(_ context.Context, cfg *configs.Resolved) (*source, error) {
	m := memoryTools{Config: cfg.Memory, recall: cfg.Tools.Recall}
	if isOff(m.Config) && !m.recall {
		return nil, nil //nolint:nilnil // nothing is configured
	}
	return &source{kind: "memory", tools: m.tools}, nil
}

func (m memoryTools) tools(p AttemptPaths) ([]tools.Tool, error) {
	var list []tools.Tool
	switch m.Notes {
	case memory.NotesWorkspace, memory.NotesAttempt:
		// Unless the notes are those of a workspace, each attempt has its own file, so that instances share none.
		path := p.file(notesName)
		if m.Notes == memory.NotesWorkspace && p.Workspace != "" {
			var err error
			if path, err = WorkspaceNotes(p.Workspace); err != nil {
				return nil, err
			}
		}
		list = append(list, memory.NoteTools(memory.NewStore(path))...)
	}
	if m.Goals {
		list = append(list, memory.NewGoals())
	}
	if m.recall {
		list = append(list, memory.RecallTool{})
	}
	return list, nil
}

// WorkspaceNotes returns the path of the notes for a workspace.
func WorkspaceNotes(folder string) (string, error) {
	_, key, err := userdirs.FolderKey(folder)
	if err != nil {
		return "", err
	}
	return filepath.Join(userdirs.StateDir(), "mini", "notes", key, notesName), nil
}
