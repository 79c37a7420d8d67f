package screen

import (
	"sync"

	"github.com/minibench/mini/cmd/mini/internal/chat"
)

// controls pass on what the person does, once there is somebody to act on it.
type controls struct {
	mu sync.Mutex
	to chat.Controls // may be nil
}

func (c *controls) listen(to chat.Controls) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.to = to
}

func (c *controls) now() chat.Controls {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.to
}

// Input implements chat.Controls.
func (c *controls) Input(text string) {
	if to := c.now(); to != nil {
		to.Input(text)
	}
}

// Interrupt implements chat.Controls.
func (c *controls) Interrupt() {
	if to := c.now(); to != nil {
		to.Interrupt()
	}
}

// Hangup implements chat.Controls.
func (c *controls) Hangup() {
	if to := c.now(); to != nil {
		to.Hangup()
	}
}

// Commands implements chat.Controls. Questions are asked before there is a
// session to act on anything else, and slash commands answer them.
func (c *controls) Commands() []chat.Slash {
	if to := c.now(); to != nil {
		return to.Commands()
	}
	return chat.Slashes()
}
