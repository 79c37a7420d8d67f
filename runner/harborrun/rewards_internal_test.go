package harborrun

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"maps"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParseRewards(t *testing.T) {
	for _, tt := range []struct {
		text string
		want map[string]float64 // nil: an error
	}{
		{`{"reward": 1}`, map[string]float64{"reward": 1}},
		{`{"a": 0.5, "b": -2}`, map[string]float64{"a": 0.5, "b": -2}},
		{`{}`, nil},
		{`[1]`, nil},
		{`1`, nil},
		{`null`, nil},
		{`{"reward": NaN}`, nil},
		{`{"reward": 1e999}`, nil},
		{`{"reward": true}`, nil},
		{`{"reward": {"a": 1}}`, nil},
		{`{"` + strings.Repeat("a", 300) + `": 1}`, nil},
	} {
		got, err := parseRewards([]byte(tt.text))
		if (err == nil) != (tt.want != nil) || !maps.Equal(got, tt.want) {
			t.Errorf("%.60s: %v, %v", tt.text, got, err)
		}
		if _, ok := errors.AsType[*RewardError](err); err != nil && !ok {
			t.Errorf("%.60s: %T", tt.text, err)
		}
	}
}

func TestCombineRewards(t *testing.T) {
	one, half := map[string]float64{"reward": 1, "style": 1}, map[string]float64{"reward": 0.5}
	for _, tt := range []struct {
		strategy string
		steps    []map[string]float64
		want     map[string]float64
	}{
		{"", []map[string]float64{one}, one},
		{"mean", []map[string]float64{one, half}, map[string]float64{"reward": 0.75, "style": 0.5}},
		{"", []map[string]float64{one, nil}, map[string]float64{"reward": 0.5, "style": 0.5}},
		{"final", []map[string]float64{one, half}, half},
		{"final", []map[string]float64{one, nil}, nil},
		{"mean", []map[string]float64{nil, nil}, nil},
	} {
		if got := combineRewards(tt.strategy, tt.steps); !maps.Equal(got, tt.want) {
			t.Errorf("%s of %v: %v, want %v", tt.strategy, tt.steps, got, tt.want)
		}
	}
}

func TestWithoutLinks(t *testing.T) {
	var in, out bytes.Buffer
	w := tar.NewWriter(&in)
	for _, h := range []tar.Header{
		{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "d/file", Typeflag: tar.TypeReg, Size: 1, Mode: 0o644},
		{Name: "d/link", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"},
		{Name: "d/hard", Typeflag: tar.TypeLink, Linkname: "d/file"},
		{Name: "d/x.tmp", Typeflag: tar.TypeReg, Mode: 0o644},
		{Name: "cache/a", Typeflag: tar.TypeReg, Mode: 0o644},
	} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(make([]byte, h.Size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := withoutLinks(&in, &out, []string{"*.tmp", "cache"}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(&out); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, h.Name)
	}
	if got := strings.Join(names, " "); got != "d/ d/file" {
		t.Error(got)
	}
}

// A failure on either side of a pipe ends both, and the cause is returned.
func TestPipe(t *testing.T) {
	readErr, writeErr := errors.New("read"), errors.New("write")
	write := func(w io.Writer) error {
		_, err := w.Write(make([]byte, 1<<20))
		return err
	}
	drain := func(r io.Reader) error { _, err := io.Copy(io.Discard, r); return err }
	if err := pipe(write, drain); err != nil {
		t.Error(err)
	}
	if err := pipe(write, func(io.Reader) error { return readErr }); !errors.Is(err, readErr) {
		t.Error(err)
	}
	if err := pipe(func(io.Writer) error { return writeErr }, drain); !errors.Is(err, writeErr) {
		t.Error(err)
	}
}
