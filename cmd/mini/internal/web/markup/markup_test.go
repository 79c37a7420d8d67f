package markup_test

import (
	"fmt"
	"html/template"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/minibench/mini/cmd/mini/internal/web/markup"
	"github.com/minibench/mini/cmd/mini/internal/web/webtest"
	"github.com/minibench/mini/internal/sanitize"
	"github.com/minibench/mini/internal/sanitize/attacktest"
	"github.com/minibench/mini/trajectories/query"
)

func TestText(t *testing.T) {
	ctl := func(code, sign string) string { return `<span class="ctl" title="` + code + `">` + sign + `</span>` }
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "a b\n\tc\n", "a b\n\tc\n"},
		{"escaped", `</script><b a="x">&amp; '`, "&lt;/script&gt;&lt;b a=&#34;x&#34;&gt;&amp;amp; &#39;"},
		{"line ends", "a\r\nb\rc\r\r\n", "a\nb" + ctl("U+000D", "␍") + "c" + ctl("U+000D", "␍") + "\n"},
		{"sequences stay", "\x1b[31mred", ctl("U+001B", "␛") + "[31mred"},
		{"direction", "admin\u202etxt.exe", "admin" + ctl("U+202E", "\ufffd") + "txt.exe"},
		{"a run", "\u2066\u2067x", ctl("U+2066 U+2067", "\ufffd\ufffd") + "x"},
		{"NUL, BEL, DEL", "\x00\x07\x7f", ctl("U+0000 U+0007 U+007F", "␀␇␡")},
		{"no UTF-8", "a\xff\xfe\xed\xa0\x80\xe2\x82", "a" + ctl("0xFF 0xFE 0xED 0xA0 0x80 0xE2 0x82", strings.Repeat("\ufffd", 7))},
		{"U+FFFD itself", "\ufffd", "\ufffd"},
		{"line ends of Unicode", "a\u2028\u2029\u0085\v\fb", "a" + ctl("U+2028 U+2029 U+0085 U+000B U+000C", "␤␤␤␋␌") + "b"},
		{"without width", "a\u200bb\u2060\ufeff\u00ad", "a" + ctl("U+200B", "\ufffd") + "b" + ctl("U+2060 U+FEFF U+00AD", "\ufffd\ufffd\ufffd")},
		{"tags", "a\U000e0041\U000e007f", "a" + ctl("U+E0041 U+E007F", "\ufffd\ufffd")},
		{"a long run", strings.Repeat("\x01", 1000) + "x", ctl(strings.TrimSpace(strings.Repeat("U+0001 ", 8)), "␁␁␁␁␁␁␁␁(992 more)") + "x"},
		{"joiners", "می\u200cخواهم क्\u200dष a\u200db", "می\u200cخواهم क्\u200dष a" + ctl("U+200D", "\ufffd") + "b"},
		{"two joiners", "م\u200c\u200cم", "م" + ctl("U+200C U+200C", "\ufffd\ufffd") + "م"},
		{"emoji", "👩🏽\u200d🚀 ❤\ufe0f\u200d🔥 1\ufe0f\u20e3", "👩🏽\u200d🚀 ❤\ufe0f\u200d🔥 1\ufe0f\u20e3"},
		{"selectors that hide text", "❤\ufe0f\ufe0e\U000e0100", "❤\ufe0f" + ctl("U+FE0E U+E0100", "\ufffd\ufffd")},
		{"marks", "e\u0301\u0302\u0303\u0304\u0305\u0306x", "e\u0301\u0302\u0303\u0304" + ctl("U+0305 U+0306", "\ufffd\ufffd") + "x"},
		{"a mark on nothing", "\u0301x", ctl("U+0301", "\ufffd") + "x"},
		{"scripts", "שלום עולם, مرحبا, हिन्दी, ไทยที่, 日本\u3000語, a\u00a0b", "שלום עולם, مرحبا, हिन्दी, ไทยที่, 日本\u3000語, a\u00a0b"},
		{"a link", "[x](javascript:pwn()) ![x](//evil.example)", "[x](javascript:pwn()) ![x](//evil.example)"},
	} {
		if got := markup.Text(tt.in, markup.Options{}).HTML(); string(got) != tt.want {
			t.Errorf("%s: Text(%q) =\n%q, want\n%q", tt.name, tt.in, got, tt.want)
		}
	}
	if got := markup.Line("a\nb\r\n<"); string(got) != "a"+ctl("U+000A", "␊")+"b"+ctl("U+000D U+000A", "␍␊")+"&lt;" {
		t.Errorf("a line is %s", got)
	}
}

func TestOutput(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "a < b\n", "a &lt; b\n"},
		{"a colour", "a\x1b[31mred\x1b[0m b", `a<span class="fg1">red</span> b`},
		{"over a line end", "\x1b[1;92mone\ntwo\x1b[m\n", "<span class=\"fg10 bold\">one</span>\n<span class=\"fg10 bold\">two</span>\n"},
		{"all", "\x1b[2;3;4;97;100mx", `<span class="fg15 bg8 dim italic underline">x</span>`},
		{"reverse", "\x1b[7mx\x1b[31my\x1b[42mz", `<span class="fgr bgr">x</span><span class="fgr bg1">y</span><span class="fg2 bg1">z</span>`},
		{"rounded", "\x1b[38;5;196;48;2;0;0;250mx\x1b[38;5;3my", `<span class="fg9 bg12">x</span><span class="fg3 bg12">y</span>`},
		{"a link", "\x1b]8;;javascript:pwn()\x1b\\text\x1b]8;;\x1b\\ \x1b]8;;https://evil.example\x07x\x1b]8;;\x07", "text x"},
		{"an image", "a\x1b]1337;File=inline=1:AAAA\x07b\x1b]1338;url='https://evil.example/x.png'\x07c\x1b]1339;\x07\x1b_bk;t=1\x07d", "abcd"},
		{"progress", "10%\r20%\x1b[999999999B\x1b[999999999Cx\n", "20%x\n"},
		{"tags in colours", "\x1b[31m<script>\x1b[m", `<span class="fg1">&lt;script&gt;</span>`},
	} {
		if got := markup.Output(tt.in, markup.Options{}).HTML(); string(got) != tt.want {
			t.Errorf("%s: Output(%q) =\n%q, want\n%q", tt.name, tt.in, got, tt.want)
		}
	}
}

func TestProse(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"inline", "use `a<b>` and ``c`d``, `not", "use <code>`a&lt;b&gt;`</code> and <code>``c`d``</code>, `not"},
		{"a fence", "see:\n```go\nx `y`\n\n```\nend", "see:\n<pre>\n<span class=\"fence\">```go</span>\nx `y`\n\n<span class=\"fence\">```</span>\n</pre>end"},
		{"a longer fence", "````\n```\n````\nx", "<pre>\n<span class=\"fence\">````</span>\n```\n<span class=\"fence\">````</span>\n</pre>x"},
		{"tildes, no end", " ~~~\n```\nx", "<pre>\n<span class=\"fence\"> ~~~</span>\n```\nx</pre>"},
		{"no fence", "```a``` b", "<code>```a```</code> b"},
		{"text", "# [x](//evil.example) ![x](data:,) <b>", "# [x](//evil.example) ![x](data:,) &lt;b&gt;"},
	} {
		if got := markup.Prose(tt.in, markup.Options{}).HTML(); string(got) != tt.want {
			t.Errorf("%s: Prose(%q) =\n%q, want\n%q", tt.name, tt.in, got, tt.want)
		}
	}
}

// The classes of lines of a patch are in the first column.
func TestDiff(t *testing.T) {
	for _, tt := range []struct{ name, patch string }{
		{"git", `
file|diff --git "a/\tx" b/y
file|similarity index 90%
file|rename from a/../../etc/passwd
file|--- a/x
file|+++ b/x
hunk|@@ -1,3 +1,3 @@ func x
    | a
del |--- a comment of SQL
add |+++ i;
    |
    |\ No newline at end of file
file|diff --git a/z b/z
file|Binary files a/z and b/z differ`},
		{"counts that are too large", `
file|--- a/x
file|+++ b/x
hunk|@@ -1,999 +1,99999999999999999999 @@
add |+</script>
file|diff --git a/y b/y`},
		{"counts that are too small", `
file|--- a/x
file|+++ b/x
hunk|@@ -0,0 +0,0 @@
add |+a
del |-b
    | c
file|--- a/y
file|+++ b/y
hunk|@@ -1 +1 @@
del |-a
add |+b
    |-- 
    |2.39.0`},
		{"no patch", `
    |- a list
    |+ another
    |@@ no hunk`},
		{"combined", `
file|diff --cc x
file|--- a/x
file|+++ b/x
hunk|@@@ -1,2 -1,2 +1,3 @@@
    |  a
add |++b
add | +c
del |- d
    |  -e
    |end`},
	} {
		var patch string
		var want []string
		for line := range strings.SplitSeq(strings.TrimPrefix(tt.patch, "\n"), "\n") {
			class, text, _ := strings.Cut(line, "|")
			patch += text + "\n"
			want = append(want, strings.TrimSpace(class)+"|"+text)
		}
		b := markup.Diff(patch, markup.Options{})
		if got := lineClasses(t, b.HTML()); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: the lines are\n%s\nwant\n%s", tt.name, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if got := markup.Diff("--- a\r\n+++ b\r\n@@ -1 +1 @@\r\n-a\n+a\r\n", markup.Options{}).HTML(); !strings.HasSuffix(string(got),
		"<span class=\"add\">+a<span class=\"ctl\" title=\"U+000D\">␍</span>\n</span>") {
		t.Errorf("a changed line end is %s", got)
	}
}

// lineClasses returns the lines of a diff with their classes.
func lineClasses(t *testing.T, h template.HTML) (lines []string) {
	t.Helper()
	for _, n := range parse(t, h) {
		class := ""
		if n.Type == html.ElementNode {
			class, n = n.Attr[0].Val, n.FirstChild
		}
		for line := range strings.SplitSeq(strings.TrimSuffix(n.Data, "\n"), "\n") {
			lines = append(lines, class+"|"+line)
		}
	}
	return lines
}

func TestQuery(t *testing.T) {
	for _, tt := range []struct{ query, in, want string }{
		{"err", "Error: ERR err", "<mark>Err</mark>or: <mark>ERR</mark> <mark>err</mark>"},
		{"Err", "Error: ERR err", "<mark>Err</mark>or: ERR err"},
		{"a", "aaa\na", "<mark>a</mark><mark>a</mark><mark>a</mark>\n<mark>a</mark>"},
		{"<b>", "x<b>", "x<mark>&lt;b&gt;</mark>"},
		{"k", "\u212a İk", "<mark>\u212a</mark> İ<mark>k</mark>"},
		{"i", "Ⱥİ\xffi", `Ⱥ<mark>İ</mark><span class="ctl" title="0xFF">` + "\ufffd</span><mark>i</mark>"},
		{"a\u202eb", "a\u202eb", `<mark>a<span class="ctl" title="U+202E">` + "\ufffd</span>b</mark>"},
		{"none", "x", "x"},
	} {
		b := markup.Text(tt.in, markup.Options{Query: tt.query})
		if got := string(b.HTML()); got != tt.want || b.Hits() != strings.Count(tt.want, "<mark>") {
			t.Errorf("%q in %q: %d hits in %s, want %s", tt.query, tt.in, b.Hits(), got, tt.want)
		}
		if match := query.TextMatcher(tt.query); match(tt.in) != (b.Hits() > 0) {
			t.Errorf("%q in %q: query.TextMatcher says %t", tt.query, tt.in, match(tt.in))
		}
	}
	got := markup.Output("a\x1b[31mb\x1b[mc", markup.Options{Query: "abc"})
	if want := `<mark>a</mark><span class="fg1"><mark>b</mark></span><mark>c</mark>`; string(got.HTML()) != want || got.Hits() != 1 {
		t.Errorf("a hit over colours: %s", got.HTML())
	}
}

// A fold is between lines, and its parts are complete.
func TestFold(t *testing.T) {
	var patch strings.Builder
	patch.WriteString("--- a\n+++ b\n@@ -0,0 +1,97 @@\n")
	for i := range 97 {
		fmt.Fprintf(&patch, "+%d\n", i)
	}
	b := markup.Diff(patch.String(), markup.Options{})
	f := b.Fold(20)
	if f.Lines != 60 || b.Lines() != 100 {
		t.Errorf("%d of %d lines are in the middle", f.Lines, b.Lines())
	}
	for part, want := range map[template.HTML]int{f.Head: 20, f.Middle: 60, f.Tail: 20} {
		if text := textOf(t, part); strings.Count(text, "\n") != want || strings.Count(string(part), "<span") != strings.Count(string(part), "</span>") {
			t.Errorf("want %d lines: %s", want, part)
		}
	}
	if text := textOf(t, f.Head) + textOf(t, f.Middle) + textOf(t, f.Tail); text != patch.String() {
		t.Errorf("together it is %q", text)
	}
	prose := markup.Prose("```\n"+strings.Repeat("x\n", 50), markup.Options{}).Fold(20)
	for _, part := range []template.HTML{prose.Head, prose.Middle, prose.Tail} {
		if !strings.HasPrefix(string(part), "<pre>\n") || !strings.HasSuffix(string(part), "</pre>") {
			t.Errorf("a part of a fence is %s", part)
		}
	}
	if f := markup.Text(strings.Repeat("x\n", 40), markup.Options{}).Fold(20); f.Lines != 0 || f.Tail != "" || strings.Count(string(f.Head), "\n") != 40 {
		t.Errorf("40 lines are folded: %+v", f)
	}
}

func TestLimits(t *testing.T) {
	long := strings.Repeat("x", markup.MaxLine)
	if got := markup.Text(long+"yz\nend", markup.Options{}); string(got.HTML()) != long+"<span class=\"cut\">(2 more bytes)</span>\nend" || got.Omitted() != 2 {
		t.Errorf("a long line: %d bytes omitted, %.200s", got.Omitted(), got.HTML()[markup.MaxLine:])
	}
	lines := strings.Repeat("0123456789\n", 1000)
	got := markup.Text(lines, markup.Options{Limit: 120})
	if want := strings.Repeat("0123456789\n", 5) + "<span class=\"gap\">(10890 more bytes)\n</span>" + strings.Repeat("0123456789\n", 5); string(got.HTML()) != want ||
		got.Omitted() != 10890 || got.Lines() != 11 {
		t.Errorf("a long block: %d bytes omitted, %s", got.Omitted(), got.HTML())
	}
	// The last lines of an output keep what they need of their own.
	out := markup.Output(strings.Repeat("\x1b[31mred\x1b[m\n", 1000)+"\x1b[32mend\x1b[m\n", markup.Options{Limit: 200}).HTML()
	if !strings.HasSuffix(string(out), "<span class=\"fg1\">red</span>\n<span class=\"fg2\">end</span>\n") {
		t.Errorf("the end of an output is %s", out)
	}
}

// Whatever the input, the result is bounded.
func TestSize(t *testing.T) {
	var colours strings.Builder
	for i := 0; colours.Len() < 500_000; i++ {
		fmt.Fprintf(&colours, "\x1b[%dmx", 31+i%6)
	}
	for name, text := range map[string]string{
		"colours":            colours.String(),
		"all attributes":     strings.Repeat("\x1b[1;2;3;4;7;38;2;250;250;250;48;2;1;2;3ma\x1b[22mb", 8_000),
		"controls":           strings.Repeat("\u202e", 100_000),
		"controls, letters":  strings.Repeat("\x01a", 150_000),
		"runs of controls":   strings.Repeat("\x01\x02\x03\x04\x05\x06\x07\x0e\x0fa", 30_000),
		"marks":              "e" + strings.Repeat("\u0301", 150_000),
		"quotes":             strings.Repeat(`"`, 1_000_000),
		"short quoted lines": strings.Repeat("'\n", 150_000),
		"empty lines":        strings.Repeat("\n", 300_000),
		"moves":              strings.Repeat("\x1b[256Cx\n", 40_000),
		"tabs":               strings.Repeat("\t", 300_000),
		"signs of a patch":   "@@ -1 +1 @@\n" + strings.Repeat("+\n-\n", 80_000),
		"fences":             strings.Repeat("```\n```\n\n", 35_000),
		"backquotes":         strings.Repeat("`a` ", 80_000),
		"links":              strings.Repeat("[a](", 20_000) + strings.Repeat(">", 20_000) + strings.Repeat("(", 100_000),
		"no UTF-8":           strings.Repeat("\xff", 300_000),
	} {
		for kind, render := range renderers {
			for _, q := range []string{"", "a", "\t"} {
				b := render(text, markup.Options{Query: q})
				if limit := markup.MaxGrowth * markup.DefaultLimit; len(b.HTML()) > limit {
					t.Errorf("%s of %s is %d bytes long, over %d", kind, name, len(b.HTML()), limit)
				}
			}
			if kind != "Output" { // which drops text as a terminal does
				checkText(t, render(text, markup.Options{}), text)
			}
		}
	}
}

// Hostile texts add no elements and stay readable.
func TestHostile(t *testing.T) {
	for _, h := range webtest.Strings() {
		for kind, render := range renderers {
			b := render(h.Text, markup.Options{Query: "pwn"})
			if kind == "Output" {
				parse(t, b.HTML())
				continue
			}
			checkText(t, b, h.Text)
		}
		parse(t, markup.Line(h.Text))
	}
}

var renderers = map[string]func(string, markup.Options) markup.Block{
	"Text": markup.Text, "Output": markup.Output, "Diff": markup.Diff, "Prose": markup.Prose,
}

func FuzzMarkup(f *testing.F) {
	for _, attack := range attacktest.Attacks() {
		if len(attack.Text) < 4000 {
			f.Add(attack.Text, "after", 0)
		}
	}
	f.Add("a\r\n\r\nb\r", "\r", 2)
	f.Add("@@ -1 +1 @@\n+a\n-`b`\n```\n~~~\n", "A", 10)
	f.Fuzz(func(t *testing.T, text, q string, limit int) {
		for kind, render := range renderers {
			b := render(text, markup.Options{Limit: limit, Query: q})
			input := text
			if kind == "Output" {
				if limit > 0 && limit < len(text) {
					parse(t, b.HTML())
					continue // the parts are sanitized one by one
				}
				input = regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(sanitize.Output(text), "")
			}
			checkText(t, b, input)
			f := b.Fold(2)
			if got := textOf(t, f.Head) + textOf(t, f.Middle) + textOf(t, f.Tail); got != textOf(t, b.HTML()) {
				t.Errorf("%s: the parts are %q, the whole %q", kind, got, textOf(t, b.HTML()))
			}
		}
		checkText(t, markup.Text(text, markup.Options{}), text)
		parse(t, markup.Line(text))
	})
}
