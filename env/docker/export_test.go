package docker

// Still says that the container was last seen paused.
func Still(c *Container) bool {
	c.still.mu.Lock()
	defer c.still.mu.Unlock()
	return !c.still.since.IsZero()
}

// TookShortcut says that the conversation does not go through the engine.
func (c *Container) TookShortcut() bool {
	way, ok := c.link.(*crossing)
	return ok && way.conn != nil
}

// SpoilShortcuts has them made where they cannot be.
func (e *Engine) SpoilShortcuts(dir string) { e.shortcuts.dir = dir }
