package screen

import (
	"sync/atomic"

	"github.com/minibench/mini/cmd/mini/internal/chat"
)

// controls has the chat.Controls that act on what the person types. Before
// listen is called, nothing does.
type controls struct{ to atomic.Pointer[chat.Controls] }

func (c *controls) listen(to chat.Controls) { c.to.Store(&to) }

func (c *controls) now() chat.Controls {
	if to := c.to.Load(); to != nil {
		return *to
	}
	return noControls{}
}

// noControls ignores what is typed.
type noControls struct{}

// Input implements chat.Controls.
func (noControls) Input(string) {}

// Interrupt implements chat.Controls.
func (noControls) Interrupt() {}

// Hangup implements chat.Controls.
func (noControls) Hangup() {}
