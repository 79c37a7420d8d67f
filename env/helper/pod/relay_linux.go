package pod

import (
	"errors"
	"os"

	"github.com/minibench/mini/env/helper/sockets"
)

// Relay passes the standard input and output of this process to PID 1, and waits until
// PID 1 has closed them.
func Relay() error {
	control, err := sockets.Connect(socketName)
	if err != nil {
		return err
	}
	if err := sockets.SendFiles(control, os.Stdin, os.Stdout); err != nil {
		return err
	}
	if err := errors.Join(os.Stdin.Close(), os.Stdout.Close()); err != nil { // PID 1 alone holds them now
		return err
	}
	control.Read(make([]byte, 1)) //nolint:errcheck // the end of the stream
	return nil
}
