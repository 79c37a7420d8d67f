// Package webtest makes run folders for tests of pages: one with texts that attack a browser, one
// of the same shape with plain text, and large ones. Only tests import it.
//
//	webtest.HostileRun(t, dir)
//	webtest.HarmlessRun(t, other) // the pages of both have the same elements
package webtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/minibench/mini/datasets"
)

// Hostile is a text that attacks a page, its reader or the program that renders it.
type Hostile struct {
	Name string
	Text string // not always UTF-8
}

// maxShort is the length up to which a text counts as short.
const maxShort = 2000

// isShort reports whether the text can stand where only short text is usual.
func (h Hostile) isShort() bool { return len(h.Text) <= maxShort }

// isPatch reports whether the text is meant to be a whole patch.
func (h Hostile) isPatch() bool { return strings.HasPrefix(h.Name, "patch") }

// Strings returns all hostile texts. Some have megabytes. None of them may run pwn, load something
// from evil.example or change the elements of a page.
func Strings() []Hostile {
	return slices.Concat(markupStrings(), controlStrings(), bigStrings(), patchStrings(), valueStrings())
}

func markupStrings() []Hostile {
	return []Hostile{
		{"end of a script", `</script><script>pwn()</script>`},
		{"start of a comment", `<!--<script>`},
		{"end of CDATA", `]]><img src=x onerror=pwn()>`},
		{"end of an attribute", `"><svg/onload=pwn()>`},
		{"attribute without quotes", `' autofocus onfocus=pwn() x='`},
		{"end of text elements", `</textarea></title></style></pre><script>pwn()</script>`},
		{"javascript address", `javascript:pwn()`},
		{"javascript address with a tab", "java\tscript:pwn()"},
		{"javascript address as entity", `&#106;avascript:pwn()`},
		{"link in Markdown", `[x](javascript:pwn())`},
		{"link to another host", `[x](//evil.example)`},
		{"link with a line end", `[x](java%0ascript:pwn())`},
		{"image in Markdown", `![x](https://evil.example/p.png)`},
		{"data address", `data:text/html,<script>pwn()</script>`},
		{"data address of an image", `data:image/svg+xml,<svg onload=pwn()>`},
		{"templates", `{{.}} {{printf "%s" .}} ${pwn()}`},
		{"names of an object, 1", `__proto__`},
		{"names of an object, 2", `constructor`},
		{"names of an object, 3", `toString`},
		{"names of the page", `<form id=s1><input name=children>`},
		{"base", `<base href=//evil.example>`},
		{"refresh", `<meta http-equiv=refresh content="0;url=//evil.example">`},
		{"style", `<style>*{display:none}</style>`},
		{"style sheet", `<link rel=stylesheet href=//evil.example>`},
		{"frame", `<iframe srcdoc="<script>pwn()</script>"></iframe><object data=//evil.example></object>`},
	}
}

func controlStrings() []Hostile {
	return []Hostile{
		{"OSC 8, javascript", "\x1b]8;;javascript:pwn()\x1b\\text\x1b]8;;\x1b\\"},
		{"OSC 8, another host", "\x1b]8;;https://evil.example\x07text\x1b]8;;\x07"},
		{"OSC 1337", "\x1b]1337;File=inline=1;name=eC5wbmc=:iVBORw0KGgo=\x07"},
		{"OSC 1338", "\x1b]1338;url='https://evil.example/x.png';alt='x'\x07"},
		{"OSC 1339", "\x1b]1339;url='javascript:pwn()';content='x'\x07"},
		{"APC", "\x1b_bk;t=1\x07text"},
		{"cursor down", "a\x1b[999999999Bb"},
		{"cursor right", "a\x1b[999999999Cb"},
		{"cursor right within bounds", strings.Repeat("\x1b[9999Cx\n", 2000)},
		{"erase", "a\x1b[2Jb"},
		{"lone ESC", "a\x1bb\x1b"},
		{"CSI of eight bits", "a\x9b31mb \u009b31mc"},
		{"direction", "admin\u202etxt.exe"},
		{"isolates without an end", "a\u2066b\u2067c\u2068d\u2069\u2066e"},
		{"NUL, BEL, DEL", "a\x00b\x07c\x7fd"},
		{"not UTF-8", "a\xff\xfeb\xed\xa0\x80c\xe2\x82"},
		{"line ends of Unicode", "a\u2028b\u2029c\u0085d\ve\ff"},
		{"CR and CRLF", "100%\rdone\r\nnext\r"},
		{"tags", "text\U000e0069\U000e0067\U000e006e\U000e006f\U000e0072\U000e0065\U000e007f"},
		{"without width", "a\u200bb\ufeffc\u2060d\u00ade"},
		{"variation selectors", "a\ufe00\ufe01\U000e0100\U000e0101b"},
		{"homoglyphs", "раураl.com, ехаmрle"},
		{"text from right to left", "שלום עולם, مرحبا بالعالم، می\u200cخواهم"},
	}
}

func bigStrings() []Hostile {
	var colours strings.Builder
	for i := 0; colours.Len() < 1_500_000; i++ {
		fmt.Fprintf(&colours, "\x1b[%dmx", 31+i%6)
	}
	return []Hostile{
		{"colour at every character", colours.String()},
		{"no space", strings.Repeat("x", 1<<20)},
		{"marks", "e" + strings.Repeat("\u0301", 1<<19)},
		{"empty lines", strings.Repeat("\n", 100_000)},
		{"links in links", strings.Repeat("[a](", 20_000)},
		{"quotes in quotes", strings.Repeat(">", 20_000)},
		{"lists in lists", nestedLists(1 << 20)},
		{"brackets", strings.Repeat("(", 100_000)},
	}
}

// nestedLists returns lists in Markdown, each in the one before, of about size bytes.
func nestedLists(size int) string {
	var b strings.Builder
	for depth := 0; b.Len() < size; depth++ {
		b.WriteString(strings.Repeat(" ", 2*(depth%500)) + "- x\n")
	}
	return b.String()
}

func patchStrings() []Hostile {
	const header = "diff --git a/x.py b/x.py\nindex 1111111..2222222 100644\n--- a/x.py\n+++ b/x.py\n"
	return []Hostile{
		{"patch: end of a script", header + "@@ -1 +1 @@\n-a\n+</script><script>pwn()</script>\n"},
		{"patch: counts too large", header + "@@ -1,999999999 +1,99999999999999999999 @@\n-a\n+b\n"},
		{"patch: counts too small", header + "@@ -0,0 +0,0 @@\n-a\n-b\n+c\n context\n"},
		{"patch: names", "diff --git \"a/\\t\\\"x\" \"b/<b>\"\n--- \"a/\\t\\\"x\"\n+++ \"b/<img src=x onerror=pwn()>\"\n@@ -1 +1 @@\n-a\n+b\n"},
		{"patch: path", "diff --git a/../../etc/passwd b/../../etc/passwd\n--- a/../../etc/passwd\n+++ b/../../etc/passwd\n@@ -1 +1 @@\n-a\n+b\n"},
		{"patch: rename and binary", "diff --git a/x b/y\nsimilarity index 90%\nrename from x\nrename to y\nBinary files a/x and b/y differ\n" +
			"diff --git a/z b/z\nGIT binary patch\nliteral 3\nKcmZQzWMXDvWMTjS\n"},
		{"patch: CRLF", strings.ReplaceAll(header+"@@ -1 +1 @@\n-a\n+b\n", "\n", "\r\n")},
		{"patch: no line end", header + "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b"},
		{"patch: combined", "diff --cc x.py\nindex 1,2..3\n--- a/x.py\n+++ b/x.py\n@@@ -1,1 -1,1 +1,2 @@@\n++<script>pwn()</script>\n -a\n- b\n"},
		{"patch: none", "I changed nothing.\n- really\n"},
		{"patch: 20 MB in one line", header + "@@ -0,0 +1 @@\n+" + strings.Repeat("<b>", 1<<17) + strings.Repeat("x", 20<<20) + "\n"},
	}
}

func valueStrings() []Hostile {
	return []Hostile{
		{"name of a test", `x::y[<b>]`},
		{"long name of a test", "tests/test_x.py::" + strings.Repeat("test_<i>", 1250)},
		{"number, 1", `1e999`},
		{"number, 2", `-0`},
		{"number, 3", `NaN`},
		{"path", `../../x`},
		{"path in an address", `%2e%2e/%2e%2e/x?a=1#b`},
		{"cell, 1", `=cmd|' /C calc'!A0`},
		{"cell, 2", `+1`},
		{"cell, 3", `@x`},
		{"cell, 4", "-1,\"\n2"},
	}
}

// IDs returns hostile instance ids. Those that datasets.CheckID accepts have attempts in
// HostileRun; the others are only in its results.json, where the author of a run can write them.
func IDs() (valid, invalid []string) {
	ids := []string{"CON", "%2e%2e", "Case-1", "case-1", "../../x", "a/b", "..", "", strings.Repeat("x", 300), "a\nb", "admin\u202etxt.exe"}
	for _, s := range markupStrings() {
		ids = append(ids, s.Text)
	}
	for _, id := range ids {
		if datasets.CheckID(id) == nil {
			valid = append(valid, id)
		} else {
			invalid = append(invalid, id)
		}
	}
	return valid, invalid
}
