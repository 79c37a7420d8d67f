package screen

import (
	"sync/atomic"

	"github.com/minibench/mini/cmd/mini/internal/chat"
)

// controls are whose act on what the person does, once there is somebody to.
type controls struct{ to atomic.Pointer[chat.Controls] }

func (c *controls) listen(to chat.Controls) { c.to.Store(&to) }

func (c *controls) now() chat.Controls {
	if to := c.to.Load(); to != nil {
		return *to
	}
	return nobody{}
}

// nobody acts on nothing.
type nobody struct{}

// Input implements chat.Controls.
func (nobody) Input(string) {}

// Interrupt implements chat.Controls.
func (nobody) Interrupt() {}

// Hangup implements chat.Controls.
func (nobody) Hangup() {}
