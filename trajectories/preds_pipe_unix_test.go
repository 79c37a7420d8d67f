//go:build unix

package trajectories_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/minibench/mini/trajectories"
)

// TestPredictionsFromPipe checks that ReadPipedPredictions fails for a pipe without a writer, and
// reads a pipe with a writer to its end, as for -p <(jq ...).
func TestPredictionsFromPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := trajectories.ReadPipedPredictions(path); err == nil || !strings.Contains(err.Error(), "pipe is empty") {
		t.Errorf("without a writer: %v", err)
	}
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	patch := strings.Repeat("x", 1<<20) // larger than a pipe buffer
	written := make(chan error, 1)
	go func() {
		_, err := fmt.Fprintf(in, `[{"instance_id":"a","model_patch":"%s"}]`, patch)
		written <- err
		_ = in.Close()
	}()
	name := fmt.Sprintf("/dev/fd/%d", out.Fd())
	if _, err := os.Stat(name); err != nil {
		t.Skip("no /dev/fd here:", errors.Join(err, in.Close()))
	}
	got, err := trajectories.ReadPipedPredictions(name)
	if err != nil || len(got.List) != 1 || got.List[0].Patch != patch {
		t.Errorf("%d predictions, %v", len(got.List), err)
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}
