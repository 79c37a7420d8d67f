//go:build !linux

package tui

import "errors"

func child(string) error { return errors.New("only on Linux") }
