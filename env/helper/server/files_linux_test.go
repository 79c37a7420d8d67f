package server_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/internal/require"
)

// TestFileTransferMemory copies 40 MB in and out, and checks the peak memory of the
// helper and the heap of the client.
func TestFileTransferMemory(t *testing.T) {
	const size = 40_000_000
	b := start(t)
	files, ok := dial(t, b).(env.Files)
	if !ok {
		t.Fatal("no files")
	}
	defer files.(env.Environment).Close(t.Context()) // Close cannot fail
	dir := t.TempDir()
	r, w := io.Pipe()
	go func() {
		tree := tar.NewWriter(w)
		err := tree.WriteHeader(&tar.Header{Name: "large", Typeflag: tar.TypeReg, Mode: 0o644, Size: size})
		for left := size; err == nil && left > 0; left -= 1_000_000 {
			_, err = tree.Write(make([]byte, 1_000_000))
		}
		w.CloseWithError(errors.Join(err, tree.Close()))
	}()
	require.NoError(t, files.Put(t.Context(), dir, r))
	if info, err := os.Stat(filepath.Join(dir, "large")); err != nil || info.Size() != size {
		t.Fatalf("%+v, %v", info, err)
	}
	sink := &heapSampler{}
	if err := files.Get(t.Context(), filepath.Join(dir, "large"), sink); err != nil || sink.bytes < size {
		t.Fatalf("%d bytes, %v", sink.bytes, err)
	}
	peak := memory(t, b.cmd.Process.Pid)
	t.Logf("peak memory of the helper: %d KiB; largest heap of the client: %d KiB", peak, sink.maxHeap>>10)
	if peak > 12<<10 || sink.maxHeap > 16<<20 {
		t.Error("the transfer uses too much memory")
	}
}

// heapSampler discards a stream and samples the heap size of this process.
type heapSampler struct {
	bytes   int
	samples int
	maxHeap uint64
}

func (h *heapSampler) Write(p []byte) (int, error) {
	if h.bytes += len(p); h.bytes > h.samples*10_000_000 {
		h.samples++
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		h.maxHeap = max(h.maxHeap, m.HeapAlloc)
	}
	return len(p), nil
}

// TestWindow: data without credit ends the connection, and does not fill the helper's
// memory.
func TestWindow(t *testing.T) {
	b := start(t)
	b.setup(helper.Setup{})
	dir := filepath.Join(t.TempDir(), "dir")
	b.send(helper.KindPut, 1, []byte(dir))
	// A valid, endless tar stream that ignores WindowUpdate frames.
	var head bytes.Buffer
	require.NoError(t, tar.NewWriter(&head).WriteHeader(&tar.Header{Name: "x", Typeflag: tar.TypeReg, Size: 1 << 33}))
	b.send(helper.KindData, 1, head.Bytes())
	for range 500 {
		if helper.WriteFrame(b.in, helper.Frame{Kind: helper.KindData, ID: 1, Body: make([]byte, helper.MaxChunk)}) != nil {
			break // the helper has ended the connection
		}
	}
	b.in.Close() //nolint:errcheck // the helper may be gone
	if _, err := io.Copy(io.Discard, b.out); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
