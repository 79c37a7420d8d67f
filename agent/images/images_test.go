package images_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent/images"
	"github.com/minibench/mini/env/local"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// pngImage returns a PNG image with the given width and a height of 1.
func pngImage(t *testing.T, width int) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, width, 1))))
	return b.Bytes()
}

func TestDecode(t *testing.T) {
	canvas := image.NewGray(image.Rect(0, 0, 2, 2))
	var jpg, gif89 bytes.Buffer
	require.NoError(t, errors.Join(jpeg.Encode(&jpg, canvas, nil), gif.Encode(&gif89, canvas, nil)))
	small := pngImage(t, 3)
	for name, tt := range map[string]struct {
		data       []byte
		kind, want string
	}{
		"png":       {small, "image/png", ""},
		"jpeg":      {jpg.Bytes(), "image/jpeg", ""},
		"gif":       {gif89.Bytes(), "image/gif", ""},
		"webp":      {[]byte("RIFF\x10\x00\x00\x00WEBPVP8 ...."), "image/webp", ""},
		"too large": {append(pngImage(t, 3), make([]byte, images.MaxBytes)...), "", "larger than 5 MB"},
		"too wide":  {pngImage(t, images.MaxSide+1), "", "8001 x 1 pixels"},
		"as wide":   {pngImage(t, images.MaxSide), "image/png", ""},
		"damaged":   {small[:20], "", "damaged"},
		"svg":       {[]byte("<svg/>"), "", "neither PNG"},
		"empty":     {nil, "", "neither PNG"},
	} {
		t.Run(name, func(t *testing.T) {
			img, err := images.Decode(tt.data)
			if tt.want == "" && (err != nil || img.MediaType != tt.kind || !bytes.Equal(img.Data, tt.data)) {
				t.Errorf("%s, %v", img.MediaType, err)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error is %v, want %q", err, tt.want)
			}
		})
	}
}

func TestTaskRefs(t *testing.T) {
	many := make([]any, 25)
	for i := range many {
		many[i] = strings.Repeat("x", i+1)
	}
	for name, tt := range map[string]struct {
		assets any
		want   []string
		more   bool
	}{
		"none":           {nil, nil, false},
		"object":         {map[string]any{"problem_statement": []any{"a", "b", "a", "", 7.0}, "test_patch": []any{"c"}}, []string{"a", "b"}, false},
		"text":           {`{"problem_statement": ["a"], "patch": [{"path": "x"}]}`, []string{"a"}, false},
		"no JSON":        {`{"`, nil, false},
		"another shape":  {[]any{"a"}, nil, false},
		"a single value": {map[string]any{"problem_statement": "a"}, nil, false},
	} {
		refs, more := images.TaskRefs(map[string]any{"image_assets": tt.assets})
		if diff := cmp.Diff(tt.want, refs); diff != "" || more != tt.more {
			t.Errorf("%s: more %v, refs (-want +got):\n%s", name, more, diff)
		}
	}
	if refs, more := images.TaskRefs(map[string]any{"image_assets": map[string]any{"problem_statement": many}}); len(refs) != 20 || !more {
		t.Errorf("of 25 there are %d, more %v", len(refs), more)
	}
}

type fakeFetcher map[string][]byte

func (f fakeFetcher) Fetch(_ context.Context, url string) ([]byte, error) {
	if data, ok := f[url]; ok {
		return data, nil
	}
	return nil, errors.New("the server answers 404")
}

func TestSource(t *testing.T) {
	small := pngImage(t, 3)
	top := t.TempDir()
	folder := filepath.Join(top, "images")
	for _, name := range []string{"a.png", "h.example/x/b.png", "../secret.png"} {
		path := filepath.Join(folder, name)
		require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, small, 0o600)))
	}
	require.NoError(t, os.Symlink(filepath.Join(top, "secret.png"), filepath.Join(folder, "link.png")))
	data := "data:image/png;base64," + base64.StdEncoding.EncodeToString(small)
	here := images.Source{Folder: folder}
	online := images.Source{Folder: folder, Fetcher: fakeFetcher{"https://h.example/c.png?x=1": small, "https://h.example/page": []byte("<html>")}}
	for name, tt := range map[string]struct {
		source    images.Source
		ref, want string
	}{
		"data URI":              {images.Source{}, data, ""},
		"data URI, other name":  {images.Source{}, strings.Replace(data, "png", "jpeg", 1), ""},
		"data URI, not base64":  {images.Source{}, "data:image/png,abc", "not base64"},
		"data URI, damaged":     {images.Source{}, "data:image/png;base64,*", "not base64"},
		"data URI, of text":     {images.Source{}, "data:image/png;base64,aGVsbG8=", "neither PNG"},
		"data URI, too large":   {images.Source{}, "data:image/png;base64," + strings.Repeat("A", 8<<20), "larger than 5 MB"},
		"file":                  {here, "a.png", ""},
		"file that is missing":  {here, "b.png", "not in the image folder"},
		"no folder":             {images.Source{}, "a.png", "agent.images.folder"},
		"out of the folder":     {here, "../secret.png", "cannot be read from the image folder"},
		"out by a link":         {here, "link.png", "cannot be read from the image folder"},
		"absolute":              {here, filepath.Join(top, "secret.png"), "cannot be read from the image folder"},
		"a folder":              {here, "h.example", "not a regular file"},
		"URL in the folder":     {here, "https://h.example/x/b.png?raw=true", ""},
		"URL out of the folder": {here, "https://h.example/../../secret.png", "cannot be read from the image folder"},
		"host that climbs":      {here, "https://../secret.png", "cannot be read from the image folder"},
		"URL, not fetched":      {here, "https://h.example/c.png", "agent.images.fetch"},
		"URL, fetched":          {online, "https://h.example/c.png?x=1", ""},
		"URL of something else": {online, "https://h.example/page", "neither PNG"},
		"URL that fails":        {online, "https://h.example/d.png", "answers 404"},
		"other scheme":          {online, "file:///etc/passwd", "neither a file nor an http"},
		"no URL":                {online, "http://[", "neither a file nor an http"},
	} {
		t.Run(name, func(t *testing.T) {
			img, err := tt.source.Load(t.Context(), tt.ref)
			if tt.want == "" && (err != nil || img.MediaType != "image/png") {
				t.Errorf("%s, %v", img.MediaType, err)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error is %v, want %q", err, tt.want)
			}
		})
	}
}

func TestReadFromSandbox(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string][]byte{
		"a.png": pngImage(t, 3), "it's $(touch x) \"a\".png": pngImage(t, 4), "-n": pngImage(t, 5),
		"text": []byte("hello"), "large": make([]byte, images.MaxBytes+9),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	box, err := local.New(t.Context(), local.Config{Dir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { _ = box.Close(context.WithoutCancel(t.Context())) })
	for file, want := range map[string]string{
		"a.png": "", filepath.Join(dir, "a.png"): "", "it's $(touch x) \"a\".png": "", "-n": "",
		"text": "neither PNG", "large": "larger than 5 MB", "missing": "no such file", ".": "no such file",
		"/dev/zero": "no such file", "": "no name", "a\x00b": "no name",
	} {
		_, reason, err := images.ReadFromSandbox(t.Context(), box, file)
		if err != nil || (want == "") != (reason == nil) || reason != nil && !strings.Contains(reason.Error(), want) {
			t.Errorf("%q: %v, %v; want %q", file, reason, err, want)
		}
	}
	_, err = os.Stat(filepath.Join(dir, "x"))
	assert.Error(t, err, "the name was run")
}

func TestMarkedFiles(t *testing.T) {
	output := []byte("start\nIMG: a.png \r\n IMG: no\nIMG:b\nxIMG: no\nIMG:\nIMG:c")
	files, more := images.MarkedFiles(output, "IMG:", 3)
	if diff := cmp.Diff([]string{"a.png", "b", ""}, files); diff != "" || !more {
		t.Errorf("more %v, files (-want +got):\n%s", more, diff)
	}
}
