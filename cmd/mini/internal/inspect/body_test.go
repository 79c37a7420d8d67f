package inspect

import (
	"strings"
	"testing"
)

func BenchmarkLargeOutput(b *testing.B) {
	text := strings.Repeat("some \x1b[31mred\x1b[0m line of output\twith a few words in it\n", 3<<20/60)
	for b.Loop() {
		p := &Page{}
		p.add(Output, "", text)
		body := newBody(p.Sections, true)
		l := look{width: 159}
		at := body.end(47, l)
		body.window(at, 47, l)
	}
}
