package configs

import (
	"slices"

	"github.com/minibench/mini/agent/memory"
)

// validateMemory is about what survives a conversation.
func (r *Resolved) validateMemory() []error {
	if r.Memory.Notes == "" || slices.Contains(memory.Keeping, r.Memory.Notes) {
		return nil
	}
	return r.class("memory.notes", r.Memory.Notes, memory.Keeping, "")
}
