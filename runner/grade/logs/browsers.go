package logs

import (
	"strings"

	"github.com/minibench/mini/internal/lazyregexp"
)

// The patterns of browsers' reporters. They are those of Python, with its
// classes of characters; what they have in front lets them be found fast.
const (
	anySpace   = `[\s\v\x1c-\x1f\x{85}\p{Z}]`
	noSpace    = `[^\s\v\x1c-\x1f\x{85}\p{Z}]`
	spaceOfRow = `[\t\v\f \x1c-\x1f\x{85}\p{Z}]`
	decimals   = `[\p{Nd}.]+`
)

// chrome's name of a failure keeps the space at its end, as the ids in the
// datasets do.
var chrome = lazyregexp.New(
	`Chrome` + anySpace + decimals + spaceOfRow + `\(.+?\)` + spaceOfRow + `(.*)FAILED$`)

// chartJS reads failures alone. A line that ends with "Chrome" may be the start
// of one.
func chartJS(t *Tests, text string, _ Subject) error {
	above := false
	for line := range lines(text) {
		line = dropANSI(line)
		if strings.HasSuffix(line, "FAILED") {
			s := line
			if above {
				s = "Chrome\n" + line
			}
			if m := chrome.FindStringSubmatch(s); m != nil {
				t.Set(m[1], Failed)
			}
		}
		above = strings.HasSuffix(line, "Chrome")
	}
	return nil
}

var bpmnFailures = [...]*lazyregexp.Regexp{
	lazyregexp.New(`2KPhantomJS` + anySpace + decimals + anySpace + `\(Linux` + anySpace + decimals + `\)` +
		anySpace + `(.*)FAILED\n`),
	lazyregexp.New(`2KPhantomJS` + anySpace + decimals + anySpace + `\(Linux` + anySpace + `x86_64\)` +
		anySpace + `(.*)FAILED\n`),
	lazyregexp.New(`Chrome` + anySpace + `Headless` + anySpace + `.*` + anySpace + `\(Linux` + anySpace + `x86_64\)` +
		anySpace + `(.*)FAILED\n`),
	lazyregexp.New(`HeadlessChrome` + anySpace + decimals + anySpace + `\(Linux` + anySpace + decimals + `\)` +
		anySpace + `(.*)FAILED\n`),
}

// bpmnJS reads failures alone.
func bpmnJS(t *Tests, text string, _ Subject) error {
	for _, failure := range bpmnFailures {
		for name := range groups(failure, text) {
			t.Set(name, Failed)
		}
	}
	return nil
}

var openLayersFailures = [...]*lazyregexp.Regexp{
	lazyregexp.New(`Chrome` + anySpace + `Headless` + anySpace + decimals + anySpace + `\(Linux` + anySpace +
		noSpace + `+\)` + anySpace + `(.*)` + anySpace + `FAILED\n`),
	lazyregexp.New(`Chrome` + anySpace + decimals + anySpace + `\(Linux` + anySpace +
		noSpace + `+\)` + anySpace + `(.*)FAILED\n`),
}

// openLayers reads failures alone: of its browsers, of mocha, and of images that
// differ.
func openLayers(t *Tests, text string, _ Subject) error {
	for _, failure := range openLayersFailures {
		for name := range groups(failure, text) {
			t.Set(collapse(name), Failed)
		}
	}
	atLines(throughLast(text, mochaError), func(rest string) int {
		name, n := openLayersMocha(rest)
		if n > 0 {
			t.Set(collapse(name), Failed)
		}
		return n
	})
	atLines(text, func(rest string) int {
		name, n := openLayersCase(rest)
		if n > 0 {
			t.Set(collapse(name), Failed)
		}
		return n
	})
	return nil
}
