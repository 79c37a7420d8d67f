package term

import (
	"sync/atomic"

	"github.com/minibench/mini/cmd/mini/internal/ui/chat"
)

// inputHandler holds the chat.InputHandler. Until set is called, input is ignored.
type inputHandler struct {
	handler atomic.Pointer[chat.InputHandler]
}

func (c *inputHandler) set(to chat.InputHandler) { c.handler.Store(&to) }

func (c *inputHandler) get() chat.InputHandler {
	if to := c.handler.Load(); to != nil {
		return *to
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
