//go:build !linux && !darwin

package doctor

import "errors"

func free(string) (uint64, error) { return 0, errors.ErrUnsupported }

func openFiles() (uint64, bool) { return 0, false }
