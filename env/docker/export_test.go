package docker

import "time"

// WasPausedRecently is pauseState.wasPausedRecently for a container.
func WasPausedRecently(c *Container) bool {
	return c.pause.wasPausedRecently(time.Now())
}

// UsesSocket reports whether the helper has connected to the host socket.
func (c *Container) UsesSocket() bool {
	conn, ok := c.conn.(*socketConn)
	return ok && conn.conn != nil
}

// SetSocketDir sets the directory of host sockets; a missing one makes them fail.
func (e *Engine) SetSocketDir(dir string) { e.hostSockets.dir = dir }
