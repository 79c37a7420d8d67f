package cmdutil

import (
	"bytes"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
)

// TestExitOnBrokenPipe: EPIPE on stdout is not reported, on any other file it is.
func TestExitOnBrokenPipe(t *testing.T) {
	for path, silent := range map[string]bool{"/dev/stdout": true, "/var/run/docker.sock": false} {
		var out bytes.Buffer
		err := fmt.Errorf("show: %w", &fs.PathError{Op: "write", Path: path, Err: syscall.EPIPE})
		if code := Exit(&out, err); code != exitFailed || (out.Len() == 0) != silent {
			t.Errorf("%s: code %d, %q", path, code, &out)
		}
	}
}
