package replay

import (
	"slices"
	"strings"
	"testing"
)

// TestImported checks incomplete outputs in other agents' files. In mini's own recordings they
// would be differences.
func TestImported(t *testing.T) {
	long := func(middle string) string { return "a\nb\nc" + middle + "x\ny\nz\n" }
	const short = "<warning>w</warning>\n<output_head>\na\nb\nc\n</output_head>\n<elided_chars>\n%d characters elided\n</elided_chars>\n<output_tail>\nx\ny\nz\n\n</output_tail>"
	for _, c := range []struct {
		name, then, now string
		want            []string // rules; nil if it diverged
	}{
		{"shortened", strings.Replace(short, "%d", "12", 1), long(strings.Repeat("middle\n", 9)), []string{"shortened"}},
		{"shortened by mini", "a\nb\n\n[99 bytes were not kept]\ny\nz\n", long(strings.Repeat("middle\n", 9)), []string{"shortened"}},
		{"another beginning", strings.Replace(short, "%d", "12", 1), "A\n" + long("\n\n")[2:], nil},
		{"another end", strings.Replace(short, "%d", "12", 1), long("\n\n") + "more\n", nil},
		{"ends of lines", "a\nb\nc\n", "a\r\nb\rc\r\n", []string{"text mode"}},
		{"no UTF-8", "a\uFFFD\uFFFD\uFFFD\n", "a\xff\xfe\n", []string{"text mode"}},
		{"another text", "a\nb\n", "a\r\nc\r\n", nil},
		{"both", "a\n\n[99 bytes were not kept]\nz\n", "a\r\nb\r\nz\r\n", []string{"text mode", "shortened"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := CompareImported(recorded(c.then), result(c.now), nil)
			if (got.Match == Diverged) != (c.want == nil) || !slices.Equal(got.Rules, c.want) {
				t.Errorf("%+v, want %q", got, c.want)
			}
			if own := Compare(recorded(c.then), result(c.now), nil); own.Match != OutputDiffers {
				t.Errorf("of mini's own: %+v", own)
			}
		})
	}
	x, r := recorded(""), result("")
	x.TimedOut, x.ExitCode, r.TimedOut, r.ExitCode = true, -1, true, 137
	if got := CompareImported(x, r, nil); got.Match != Exact {
		t.Errorf("two timeouts: %+v", got)
	}
}
