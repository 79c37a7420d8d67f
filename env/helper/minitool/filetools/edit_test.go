package filetools_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

const twice = "def f():\n    return 1\n\ndef g():\n    return 1\n"

func TestEdit(t *testing.T) {
	for _, tt := range []struct {
		name, before string
		args         []string // after "edit f"
		after        string
		want         string
	}{
		{"a word", "a b c\n", []string{"--old", "b", "--new", "x"}, "a x c\n", "edited f: 1 replacement at line 1\n"},
		{"across lines", twice, []string{"--old", "g():\n    return 1", "--new", "g():\n    return 2"}, strings.Replace(twice, "g():\n    return 1", "g():\n    return 2", 1), "edited f: 1 replacement at line 4\n"},
		{"taken out", "a\nb\nc\n", []string{"--old", "b\n", "--new="}, "a\nc\n", "edited f: 1 replacement at line 2\n"},
		{"all", twice, []string{"--all", "--old", "return 1", "--new", "return 2"}, strings.ReplaceAll(twice, "return 1", "return 2"), "edited f: 2 replacements at lines 2, 5\n"},
		{"all, with one", "a\n", []string{"--old", "a", "--new", "b", "--all"}, "b\n", "edited f: 1 replacement at line 1\n"},
		{"all, overlapping", "aaaaa", []string{"--old", "aa", "--new", "b", "--all"}, "bba", "edited f: 2 replacements at lines 1, 1\n"},
		{"no line end at the end", "a\nb", []string{"--old", "b", "--new", "c"}, "a\nc", "edited f: 1 replacement at line 2\n"},
		{"CRLF stays", "a\r\nb\r\nc\r\n", []string{"--old", "b", "--new", "x"}, "a\r\nx\r\nc\r\n", "edited f: 1 replacement at line 2\n"},
		{"CRLF across lines", "a\r\nb\r\nc\r\n", []string{"--old", "a\nb", "--new", "x\ny\nz"}, "x\r\ny\r\nz\r\nc\r\n", "edited f: 1 replacement at line 1; line ends are CRLF as in the rest of the file\n"},
		{"CRLF as it is", "a\r\nb\r\n", []string{"--old", "a\r\nb", "--new", "x\r\ny"}, "x\r\ny\r\n", "edited f: 1 replacement at line 1\n"},
		{"mixed line ends stay", "a\r\nb\nc\r\n", []string{"--old", "b\nc", "--new", "x\ny"}, "a\r\nx\ny\r\n", "edited f: 1 replacement at line 2\n"},
		{"unicode", "naïve → x\n", []string{"--old", "→", "--new", "𝄞"}, "naïve 𝄞 x\n", "edited f: 1 replacement at line 1\n"},
		{"bytes that are none", "\xff\xfe\x00a", []string{"--old", "a", "--new", "b"}, "\xff\xfe\x00b", "edited f: 1 replacement at line 1\n"},
		{"values that look like options", "--old --x\n", []string{"--old", "--x", "--new", "--all"}, "--old --all\n", "edited f: 1 replacement at line 1\n"},
		{"signs of expressions are plain", "a.*b $1\n", []string{"--old", ".*", "--new", "$1\\1&"}, "a$1\\1&b $1\n", "edited f: 1 replacement at line 1\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			workFolder(t, map[string]string{"f": tt.before})
			got := run(t, nil, append([]string{"edit", "f"}, tt.args...)...)
			if got.code != 0 || got.err != "" || got.out != tt.want {
				t.Errorf("%+v\nwant %q", got, tt.want)
			}
			if after := contentOf(t, "f"); after != tt.after {
				t.Errorf("the file has %q, want %q", after, tt.after)
			}
			noLeftovers(t, ".", "f")
		})
	}
}

func TestEditNoMatch(t *testing.T) {
	for _, tt := range []struct {
		name, before, old string
		want              string
	}{
		{"twice", twice, "return 1", "the old text is there 2 times, at lines 2, 5; take more of the text around the one that is meant, or --all\n"},
		{"overlapping", "aaa", "aa", "the old text is there 2 times, at lines 1, 1;"},
		{"very often", strings.Repeat("a\n", 5000), "a", "1000 times or more, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20 and 980 more;"},
		{"never", "a\nb\n", "zzz", "f: the old text is not there\n"},
		{"in an empty file", "", "zzz", "f: the old text is not there\n"},
		{"indented otherwise", twice, "def g():\n  return 1\n", "lines 4 to 5 differ from it in white space only:\n4\tdef g():\n5\t    return 1\n"},
		{"tabs", "\tx = 1\n", "    x = 1", "line 1 differs from it in white space only:\n1\t\tx = 1\n"},
		{"a space too many", "f(a, b)\n", "f(a,b)", "line 1 differs from it in white space only:\n1\tf(a, b)\n"},
		{"upper case", "Hello there\n", "hello there", "line 1 differs from it in upper and lower case:\n"},
		{"with numbers", twice, "1\tdef f():\n2\t    return 1", "it has numbers of lines in it, which read shows and the file has not\n"},
		{"only its beginning", twice, "def f():\n    return 2\n", "it begins as line 1 does, but line 2 is:\n2\t    return 1\n"},
		{"beyond the end", "a\nb\n", "b\nc\n", "it begins as line 2 does, but the file ends before it does\n"},
		{"white space alone", "a\n", "  \n ", "the old text is not there\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			workFolder(t, map[string]string{"f": tt.before})
			got := run(t, nil, "edit", "f", "--old", tt.old, "--new", "new")
			if got.code != 1 || got.out != "" || !strings.Contains(got.err, tt.want) {
				t.Errorf("%+v\nwant %q", got, tt.want)
			}
			assert.Equal(t, tt.before, contentOf(t, "f"), "the file")
			noLeftovers(t, ".", "f")
		})
	}
}

func TestEditBlocks(t *testing.T) {
	for _, tt := range []struct {
		name, before, input string
		args                []string
		after               string
		code                int
		want                string
	}{
		{
			name: "one", before: twice, input: "<<<<<<< OLD\ndef g():\n    return 1\n=======\ndef g():\n    return 2\n>>>>>>> NEW\n",
			after: strings.Replace(twice, "g():\n    return 1", "g():\n    return 2", 1), want: "edited f: 1 replacement at line 4\n",
		},
		{
			name: "other words, and none", before: "a\nb\n", input: "\n<<<<<<< SEARCH\na\n=======\nx\n>>>>>>> REPLACE\n\n<<<<<<<\nb\n=======\n>>>>>>>",
			after: "x\n", want: "edited f: 2 replacements at lines 1, 2\n",
		},
		{name: "one after the other", before: "a\n", input: "<<<<<<<\na\n=======\nb\n>>>>>>>\n<<<<<<<\nb\n=======\nc\n>>>>>>>\n", after: "c\n", want: "edited f: 2 replacements at lines 1, 1\n"},
		{name: "whole lines only", before: "bar\nfoobar\n", input: "<<<<<<<\nbar\n=======\nx\n>>>>>>>\n", after: "x\nfoobar\n", want: "edited f: 1 replacement at line 1\n"},
		{name: "the last line has no end", before: "a\nb", input: "<<<<<<<\nb\n=======\nc\nd\n>>>>>>>\n", after: "a\nc\nd", want: "edited f: 1 replacement at line 2\n"},
		{name: "CRLF", before: "a\r\nb\r\n", input: "<<<<<<<\nb\n=======\nc\nd\n>>>>>>>\n", after: "a\r\nc\r\nd\r\n", want: "edited f: 1 replacement at line 2; line ends are CRLF as in the rest of the file\n"},
		{name: "longer markers", before: "T\n=======\nx\n", input: "<<<<<<<< OLD\nT\n=======\n========\nU\n=======\n>>>>>>>> NEW\n", after: "U\n=======\nx\n", want: "edited f: 1 replacement at line 1\n"},
		{name: "all", before: "a\nb\na\n", input: "<<<<<<<\na\n=======\nc\n>>>>>>>\n", args: []string{"--all"}, after: "c\nb\nc\n", want: "edited f: 2 replacements at lines 1, 3\n"},
		{name: "the second is not there", before: "a\nb\n", input: "<<<<<<<\na\n=======\nx\n>>>>>>>\n<<<<<<<\nc\n=======\nx\n>>>>>>>\n", code: 1, want: "f: block 2: the old text is not there\n"},
		{name: "twice", before: "a\na\n", input: "<<<<<<<\na\n=======\nx\n>>>>>>>\n", code: 1, want: "2 times, at lines 1, 2"},
		{name: "two lines between", before: "a\n", input: "<<<<<<<\na\n=======\nx\n=======\ny\n>>>>>>>\n", code: 2, want: "lines 3 and 5 of standard input both could be the one between old and new"},
		{name: "none between", before: "a\n", input: "<<<<<<<\na\n>>>>>>>\n", code: 2, want: "the block of line 1 of standard input has no line of 7 = signs"},
		{name: "no end", before: "a\n", input: "<<<<<<<\na\n=======\nb\n", code: 2, want: "the block of line 1 of standard input has no end"},
		{name: "a block in a block", before: "a\n", input: "<<<<<<<\na\n<<<<<<<\n", code: 2, want: "line 3 of standard input begins a block before the one of line 1 has ended"},
		{name: "no block", before: "a\n", input: "replace a by b\n", code: 2, want: "line 1 of standard input begins no block: replace a by b"},
		{name: "nothing", before: "a\n", input: "", code: 2, want: "standard input has no block"},
		{name: "nothing old", before: "a\n", input: "<<<<<<<\n=======\nb\n>>>>>>>\n", code: 2, want: "the old text is empty"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			workFolder(t, map[string]string{"f": tt.before})
			if tt.code != 0 {
				tt.after = tt.before
			}
			got := run(t, &tt.input, append([]string{"edit", "f", "-"}, tt.args...)...)
			if got.code != tt.code || !strings.Contains(got.out+got.err, tt.want) {
				t.Errorf("%+v\nwant %d, %q", got, tt.code, tt.want)
			}
			if after := contentOf(t, "f"); after != tt.after {
				t.Errorf("the file has %q, want %q", after, tt.after)
			}
		})
	}
}

func TestEditKeepsModeAndLink(t *testing.T) {
	workFolder(t, map[string]string{"dir/f": "a\n"})
	require.NoError(t, os.Chmod("dir/f", 0o755))
	require.NoError(t, os.Symlink("dir/f", "link"))
	if got := run(t, nil, "edit", "link", "--old", "a", "--new", "b"); got.code != 0 || got.out != "edited link: 1 replacement at line 1\n" {
		t.Errorf("%+v", got)
	}
	if contentOf(t, "dir/f") != "b\n" || modeOf(t, "dir/f") != 0o755 || modeOf(t, "link") != 0o755 {
		t.Errorf("%q, %v", contentOf(t, "dir/f"), modeOf(t, "dir/f"))
	}
	if to, err := os.Readlink("link"); err != nil || to != "dir/f" {
		t.Errorf("the link leads to %q, %v", to, err)
	}
}

func TestHugeFile(t *testing.T) {
	workFolder(t, map[string]string{"f": ""})
	require.NoError(t, os.Truncate("f", 64<<20+1))
	if got := run(t, nil, "edit", "f", "--old", "a", "--new", "b"); got.code != 1 || !strings.Contains(got.err, "more than 64 MB; change it with sed") {
		t.Errorf("%+v", got)
	}
	if got := run(t, nil, "read", "f"); got.code != 1 || !strings.Contains(got.err, "more than 64 MB; read it with sed -n") {
		t.Errorf("%+v", got)
	}
}

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
			assert.Equal(t, tt.wantContent, contentOf(t, tt.file), "the file")
			noLeftovers(t, filepath.Dir(tt.file), filepath.Base(tt.file))
		})
	}
}

func TestWriteKeepsTheMode(t *testing.T) {
	workFolder(t, map[string]string{"f": "x"})
	for _, mode := range []os.FileMode{0o755, 0o600, 0o666 | os.ModeSetgid} {
		require.NoError(t, os.Chmod("f", mode))
		if got := run(t, nil, "write", "f", "y"); got.code != 0 || modeOf(t, "f") != mode {
			t.Errorf("%+v, mode %v, want %v", got, modeOf(t, "f"), mode)
		}
	}
}

func TestWriteThroughLinks(t *testing.T) {
	workFolder(t, map[string]string{"dir/target": "x"})
	for link, target := range map[string]string{"link": "dir/target", "second": "link", "new": "dir/made", "loop": "loop", "folder": "dir"} {
		require.NoError(t, os.Symlink(target, link))
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
	require.NoError(t, os.Link("f", "g"))
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
