//go:build !linux && !darwin

package tui

import "os"

func (l *Live) suspend() {}

// Foreground says whether this process may use the terminal.
func Foreground(*os.File) bool { return true }
