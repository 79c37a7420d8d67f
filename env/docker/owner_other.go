//go:build !linux && !darwin

package docker

// Boot and PID namespace are not asked for here, so that every other owner is
// unknown.
func bootID() string { return "" }

func pidSpace() string { return "" }
