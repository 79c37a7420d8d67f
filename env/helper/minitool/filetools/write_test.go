package filetools_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWrite(t *testing.T) {
	text := func(s string) *string { return &s }
	for _, tt := range []struct {
		name        string
		before      map[string]string
		input       *string
		args        []string
		file        string
		wantContent string
		want        string
	}{
		{"a new file", nil, nil, []string{"f", "a b"}, "f", "a b", "created f: 1 line, 3 bytes, no line end at the end\n"},
		{"from standard input", nil, text("a\nb\n"), []string{"f", "-"}, "f", "a\nb\n", "created f: 2 lines, 4 bytes\n"},
		{"without the -", nil, text("a\n"), []string{"f"}, "f", "a\n", "created f: 1 line, 2 bytes\n"},
		{"folders on the way", nil, nil, []string{"a/b/c", "x"}, "a/b/c", "x", "created a/b/c: 1 line, 1 byte, no line end at the end\n"},
		{"over what was there", map[string]string{"f": "long before\n"}, nil, []string{"f", "x\n"}, "f", "x\n", "overwrote f: 1 line, 2 bytes\n"},
		{"nothing", map[string]string{"f": "x"}, text(""), []string{"f", "-"}, "f", "", "overwrote f: empty\n"},
		{"an empty text", nil, nil, []string{"f", ""}, "f", "", "created f: empty\n"},
		{"every byte", nil, text("\x00\xff\r\n\n"), []string{"f", "-"}, "f", "\x00\xff\r\n\n", "created f: 2 lines, 5 bytes\n"},
		{"names and texts with a dash", nil, nil, []string{"--", "-x", "-y"}, "-x", "-y", "created -x: 1 line, 2 bytes, no line end at the end\n"},
		{"the text -", nil, nil, []string{"--", "f", "-"}, "f", "-", "created f: 1 line, 1 byte, no line end at the end\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			workFolder(t, tt.before)
			got := run(t, tt.input, append([]string{"write"}, tt.args...)...)
			if got.code != 0 || got.err != "" || got.out != tt.want {
				t.Fatalf("%+v\nwant %q", got, tt.want)
			}
			if has := contentOf(t, tt.file); has != tt.wantContent {
				t.Errorf("the file has %q, want %q", has, tt.wantContent)
			}
			noLeftovers(t, filepath.Dir(tt.file), filepath.Base(tt.file))
		})
	}
}

func TestWriteKeepsTheMode(t *testing.T) {
	workFolder(t, map[string]string{"f": "x"})
	for _, mode := range []os.FileMode{0o755, 0o600, 0o666 | os.ModeSetgid} {
		if err := os.Chmod("f", mode); err != nil {
			t.Fatal(err)
		}
		if got := run(t, nil, "write", "f", "y"); got.code != 0 || modeOf(t, "f") != mode {
			t.Errorf("%+v, mode %v, want %v", got, modeOf(t, "f"), mode)
		}
	}
}

func TestWriteThroughLinks(t *testing.T) {
	workFolder(t, map[string]string{"dir/target": "x"})
	for link, target := range map[string]string{"link": "dir/target", "second": "link", "new": "dir/made", "loop": "loop", "folder": "dir"} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ name, file string }{{"link", "dir/target"}, {"second", "dir/target"}, {"new", "dir/made"}, {"folder/other", "dir/other"}} {
		if got := run(t, nil, "write", tt.name, tt.name); got.code != 0 || contentOf(t, tt.file) != tt.name {
			t.Errorf("%s: %+v, %q", tt.name, got, contentOf(t, tt.file))
		}
	}
	for link, target := range map[string]string{"link": "dir/target", "second": "link", "new": "dir/made"} {
		if got, err := os.Readlink(link); err != nil || got != target {
			t.Errorf("%s leads to %q, %v", link, got, err)
		}
	}
	if got := run(t, nil, "write", "loop", "x"); got.code != 1 || !strings.Contains(got.err, "too many symbolic links") {
		t.Errorf("%+v", got)
	}
	noLeftovers(t, "dir", "made", "other", "target")
	noLeftovers(t, ".", "dir", "folder", "link", "loop", "new", "second")
}

func TestWriteHardLink(t *testing.T) {
	workFolder(t, map[string]string{"f": "x"})
	if err := os.Link("f", "g"); err != nil {
		t.Fatal(err)
	}
	got := run(t, nil, "write", "f", "y\n")
	if got.code != 0 || got.out != "overwrote f: 1 line, 2 bytes (it had 1 other name; they keep what was in it)\n" {
		t.Errorf("%+v", got)
	}
	if contentOf(t, "f") != "y\n" || contentOf(t, "g") != "x" {
		t.Error("one of the names has the wrong content")
	}
}

func TestWriteTooLarge(t *testing.T) {
	workFolder(t, nil)
	big := strings.Repeat("x", 64<<20+1)
	if got := run(t, &big, "write", "f", "-"); got.code != 2 || !strings.Contains(got.err, "more than 64 MB") {
		t.Errorf("%d %.200s", got.code, got.err)
	}
	noLeftovers(t, ".")
}
