package docker

// Still says that the container was last seen paused.
func Still(c *Container) bool {
	c.still.mu.Lock()
	defer c.still.mu.Unlock()
	return !c.still.since.IsZero()
}
