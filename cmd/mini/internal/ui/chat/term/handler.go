package term

import (
	"sync/atomic"

	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
)

// inputHandler holds a chat.InputHandler. Until set is called, it ignores input.
type inputHandler struct {
	handler atomic.Pointer[chat.InputHandler]
}

func (h *inputHandler) set(handler chat.InputHandler) { h.handler.Store(&handler) }

func (h *inputHandler) get() chat.InputHandler {
	if handler := h.handler.Load(); handler != nil {
		return *handler
	}
	return ignoreInput{}
}

// ignoreInput ignores all input.
type ignoreInput struct{}

// Input implements chat.InputHandler.
func (ignoreInput) Input(string) {}

// Interrupt implements chat.InputHandler.
func (ignoreInput) Interrupt() {}

// Hangup implements chat.InputHandler.
func (ignoreInput) Hangup() {}
