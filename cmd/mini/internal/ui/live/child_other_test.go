//go:build !linux

package live

import "errors"

func child(string) error { return errors.New("only on Linux") }
