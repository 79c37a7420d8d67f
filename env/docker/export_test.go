package docker

import "time"

// Still says that the container was seen paused a moment ago.
func Still(c *Container) bool {
	return c.pause.wasRecent(time.Now())
}

// TookShortcut says that the conversation does not go through the engine.
func (c *Container) TookShortcut() bool {
	way, ok := c.conn.(*socketConn)
	return ok && way.conn != nil
}

// SpoilShortcuts has them made where they cannot be.
func (e *Engine) SpoilShortcuts(dir string) { e.hostSockets.dir = dir }
