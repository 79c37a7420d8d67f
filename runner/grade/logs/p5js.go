package logs

import (
	"bytes"
	"errors"
	"iter"
	"strings"
	"unicode/utf8"
)

// p5js parses mocha's list of failures, such as "  1) suite\n       name:", in the output of a
// browser. It first removes JSON and XML.
func p5js(t *Tests, text string, _ InstanceInfo) error {
	scanned, err := withoutXML(withoutJSON(dropANSI(text)))
	if err != nil {
		return err
	}
	for name := range p5Failures(scanned) {
		if parts := strings.Split(name, "\n"); isDeepening(parts) {
			for i, part := range parts {
				parts[i] = strip(part)
			}
			t.Set(strings.Join(parts, ":"), Failed)
		}
	}
	return nil
}

// withoutJSON removes lines of JSON. These are lines enclosed in brackets, and blocks from a
// line that ends with an opening bracket to a line with only the closing bracket. Blocks do
// not nest.
func withoutJSON(text string) string {
	var scanned strings.Builder
	var object, list bool
	for line := range lines(text) {
		trimmed := stripRight(line)
		switch {
		case strings.HasSuffix(trimmed, "{"):
			object = true
		case strings.HasSuffix(trimmed, "["):
			list = true
		case trimmed == "}" && object:
			object = false
		case trimmed == "]" && list:
			list = false
		case object || list:
		case strings.HasPrefix(trimmed, "{") && strings.HasSuffix(trimmed, "}"):
		case strings.HasPrefix(trimmed, "[") && strings.HasSuffix(trimmed, "]"):
		default:
			scanned.WriteString(line + "\n")
		}
	}
	return strings.TrimSuffix(scanned.String(), "\n")
}

// Limits of withoutXML, whose worst case is quadratic. Real logs are far below them.
const (
	maxWork = 1 << 29 // processed bytes
	maxSeam = 256     // bytes of a tag on either side of a removed element
)

var errXML = errors.New("removing its XML elements takes too long")

// xmlTag matches <name> and </name> at the start of a text.
var xmlTag = PythonPattern(`^<(/?)(\w+)>`)

// withoutXML removes elements without attributes, <tag>...</tag>, until none is left. It
// removes the leftmost element first, from its start tag to the nearest end tag of that name.
// It keeps further start tags of that name within the element, so that elements of the same
// name can nest. The texts on both sides of a removed element may form a new tag.
func withoutXML(text string) (string, error) {
	var scanned []byte              // text in which no start tag has an end tag after it
	withoutEnd := map[string]bool{} // names without an end tag in text
	work := 0
	for {
		i := strings.IndexByte(text, '<')
		if i < 0 {
			return string(append(scanned, text...)), nil
		}
		scanned, text = append(scanned, text[:i]...), text[i:]
		m := xmlTag.FindStringSubmatch(text)
		end := -1
		if m != nil && m[1] == "" && !withoutEnd[m[2]] {
			end = strings.Index(text, "</"+m[2]+">")
			if withoutEnd[m[2]] = end < 0; end < 0 {
				work += len(text)
			}
		}
		if work > maxWork {
			return "", errXML
		}
		if end < 0 {
			scanned, text = append(scanned, '<'), text[1:]
			continue
		}
		tag := m[0]
		nested := strings.Count(text[len(tag):end], tag)
		text = text[end+len(tag)+1:]
		work += len(text) * nested
		text = strings.Repeat(tag, nested) + text
		// A tag may have formed where the element was. If it is an end tag, scan everything again.
		if seam := bytes.LastIndexByte(scanned, '<'); seam >= 0 && len(scanned)-seam < maxSeam {
			switch m := xmlTag.FindStringSubmatch(string(scanned[seam:]) + text[:min(len(text), maxSeam)]); {
			case m == nil:
				continue
			case m[1] != "":
				work += 16 * len(scanned) // scanning for tags is slower than copying
				seam = 0
				clear(withoutEnd)
			}
			scanned, text = scanned[:seam], string(scanned[seam:])+text
			work += len(text)
		}
	}
}

// p5MaxName is the maximum length of a failure's name, in characters.
const p5MaxName = 1000

var p5Number = PythonPattern(`(?m)^\s*\d+\)`)

// p5Failures yields the texts between a number such as "1)" at the start of a line and the
// next colon.
func p5Failures(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for loc := p5Number.FindStringIndex(text); loc != nil; loc = p5Number.FindStringIndex(text) {
			text = text[loc[1]:]
			end := strings.IndexByte(text[:min(len(text), utf8.UTFMax*p5MaxName+1)], ':')
			if end >= 0 && utf8.RuneCountInString(text[:end]) <= p5MaxName {
				if !yield(text[:end]) {
					return
				}
				text = text[end:]
			}
			text = text[min(endOfLine(text)+1, len(text)):]
		}
	}
}

// isDeepening reports whether the first part is indented and each further part is indented
// more than the part before it.
func isDeepening(parts []string) bool {
	last := 0
	for _, part := range parts {
		depth := indent(part)
		if depth <= last {
			return false
		}
		last = depth
	}
	return true
}
