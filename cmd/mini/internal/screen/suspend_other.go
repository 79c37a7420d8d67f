//go:build !linux && !darwin

package screen

import "os"

// canStop says that Ctrl-Z does nothing.
const canStop = false

func stopGroup() {}

// Foreground says whether this process may use the terminal.
func Foreground(*os.File) bool { return true }
