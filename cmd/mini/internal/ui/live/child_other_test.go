//go:build !linux

package live

import "errors"

func runChild(string) error { return errors.New("only on Linux") }
