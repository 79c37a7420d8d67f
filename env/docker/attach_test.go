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

// mixed is the engine's mix of streams, cut into frames by its own writer.
func mixed(t testing.TB, parts ...string) []byte {
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

func TestDemultiplexed(t *testing.T) {
	whole := mixed(t, "out", "err", "", "more err", "put", "", "!")
	for n := range len(whole) + 1 {
		stderr := &helper.StderrBuffer{}
		got, err := io.ReadAll(&demuxReader{from: iotest.OneByteReader(bytes.NewReader(whole[:n])), stderr: stderr})
		if n == len(whole) && (err != nil || string(got) != "output!" || stderr.String() != "errmore err") {
			t.Errorf("output %q, errors %q, %v", got, stderr, err)
		}
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
	if _, err := io.ReadAll(&demuxReader{from: bytes.NewReader([]byte{3, 0, 0, 0, 0, 0, 0, 1, 'x'}), stderr: io.Discard}); err == nil {
		t.Error("a stream that is neither stdout nor stderr was taken")
	}
}

// FuzzDemultiplexed holds it against the engine's own way to take the mix apart.
func FuzzDemultiplexed(f *testing.F) {
	f.Add(mixed(f, "out", "err", "put"))
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0, 9, 'x'})
	f.Add([]byte{2, 0, 0, 0, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, data []byte) {
		var out, errs, want, wantErrs bytes.Buffer
		d := &demuxReader{from: bytes.NewReader(data), stderr: &errs}
		_, err := io.Copy(&out, d)
		if len(data) > 4 && data[4] > 0 {
			return // stdcopy makes room for what a header promises
		}
		if _, theirs := stdcopy.StdCopy(&want, &wantErrs, bytes.NewReader(data)); theirs != nil || err != nil {
			return // they say less about where a stream was cut
		}
		if !bytes.Equal(out.Bytes(), want.Bytes()) || !bytes.Equal(errs.Bytes(), wantErrs.Bytes()) {
			t.Errorf("output %q, errors %q; want %q, %q", &out, &errs, &want, &wantErrs)
		}
	})
}
