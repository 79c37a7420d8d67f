package runner_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/minibench/mini/runner"
)

// TestEventsOnAFullDisk: a partially written event is removed, so that the next one
// is not lost. The disk is a small tmpfs; mounting it needs privileges.
func TestEventsOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("mini-test", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("cannot mount a small tmpfs here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	folder, err := runner.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	log := runner.NewLog(folder, nil)
	for range 20 {
		log.Emit(runner.Event{Type: runner.Warning, Text: strings.Repeat("x", 5000)})
	}
	log.Emit(runner.Event{Type: runner.Warning, Text: "it fits"})
	data, err := os.ReadFile(filepath.Join(dir, "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
	if len(lines) < 2 || len(lines) > 20 || !strings.Contains(string(lines[len(lines)-1]), "it fits") {
		t.Errorf("there are %d lines, and the last is %.100s", len(lines), lines[len(lines)-1])
	}
	for i, line := range lines {
		if !json.Valid(line) {
			t.Errorf("line %d is torn: %d bytes", i+1, len(line))
		}
	}
}
