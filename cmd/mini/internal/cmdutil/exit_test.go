package cmdutil

import (
	"bytes"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
)

// ReportError does not report EPIPE on stdout, but reports it on other files.
func TestExitOnBrokenPipe(t *testing.T) {
	for path, silent := range map[string]bool{"/dev/stdout": true, "/var/run/docker.sock": false} {
		var out bytes.Buffer
		err := fmt.Errorf("show: %w", &fs.PathError{Op: "write", Path: path, Err: syscall.EPIPE})
		if code := ReportError(&out, err); code != exitFailed || (out.Len() == 0) != silent {
			t.Errorf("%s: code %d, %q", path, code, &out)
		}
	}
}
