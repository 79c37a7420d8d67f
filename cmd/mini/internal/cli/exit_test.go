package cli

import (
	"bytes"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
)

// Whoever read the output may have had enough, as head has; that is no news.
// Any other pipe that breaks is.
func TestReaderThatLeft(t *testing.T) {
	for path, silent := range map[string]bool{"/dev/stdout": true, "/var/run/docker.sock": false} {
		var out bytes.Buffer
		err := fmt.Errorf("show: %w", &fs.PathError{Op: "write", Path: path, Err: syscall.EPIPE})
		if code := exit(&out, err); code != exitFailed || (out.Len() == 0) != silent {
			t.Errorf("%s: code %d, %q", path, code, &out)
		}
	}
}
