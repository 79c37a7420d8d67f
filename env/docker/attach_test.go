package docker

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/docker/docker/pkg/stdcopy"

	"github.com/minibench/mini/env/helper"
)

// multiplexed returns parts, alternately of stdout and stderr, as the engine
// multiplexes them.
func multiplexed(t testing.TB, parts ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	streams := []io.Writer{stdcopy.NewStdWriter(&b, stdcopy.Stdout), stdcopy.NewStdWriter(&b, stdcopy.Stderr)}
	for i, p := range parts {
		if _, err := streams[i%2].Write([]byte(p)); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func TestDemuxReader(t *testing.T) {
	whole := multiplexed(t, "out", "err", "", "more err", "put", "", "!")
	for n := range len(whole) + 1 {
		stderr := &helper.StderrBuffer{}
		got, err := io.ReadAll(&demuxReader{source: iotest.OneByteReader(bytes.NewReader(whole[:n])), stderr: stderr})
		if n == len(whole) && (err != nil || string(got) != "output!" || stderr.String() != "errmore err") {
			t.Errorf("output %q, errors %q, %v", got, stderr, err)
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
	if _, err := io.ReadAll(&demuxReader{source: bytes.NewReader([]byte{3, 0, 0, 0, 0, 0, 0, 1, 'x'}), stderr: io.Discard}); err == nil {
		t.Error("a stream that is neither stdout nor stderr was accepted")
	}
}

// FuzzDemuxReader compares demuxReader with Docker's package stdcopy.
func FuzzDemuxReader(f *testing.F) {
	f.Add(multiplexed(f, "out", "err", "put"))
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 9, 'x'})
	f.Add([]byte{2, 0, 0, 0, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, data []byte) {
		var out, errs, want, wantErrs bytes.Buffer
		d := &demuxReader{source: bytes.NewReader(data), stderr: &errs}
		_, err := io.Copy(&out, d)
		if len(data) > 4 && data[4] > 0 {
			return // stdcopy allocates as much memory as the header says
		}
		if _, stdcopyErr := stdcopy.StdCopy(&want, &wantErrs, bytes.NewReader(data)); stdcopyErr != nil || err != nil {
			return // stdcopy does not report every truncated stream
		}
		if !bytes.Equal(out.Bytes(), want.Bytes()) || !bytes.Equal(errs.Bytes(), wantErrs.Bytes()) {
			t.Errorf("output %q, errors %q; want %q, %q", &out, &errs, &want, &wantErrs)
		}
	})
}
