package grade

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf16"
)

// Indentation in the official files.
const (
	wideIndent   = "    " // reports and summaries
	narrowIndent = "  "   // run.json
)

// pyJSON encodes v as Python's json.dumps does with an indent, so that files are
// identical to those of the official harness. The output is ASCII; pyJSON escapes
// code points beyond 16 bits as surrogate pairs.
func pyJSON(v any, indent string) []byte {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		panic(err) // cannot happen: the values are strings, numbers and lists
	}
	ascii := make([]byte, 0, text.Len())
	for _, r := range string(bytes.TrimSuffix(text.Bytes(), []byte("\n"))) {
		switch {
		case r == '\n' || ' ' <= r && r <= '~':
			ascii = append(ascii, byte(r))
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			ascii = fmt.Appendf(ascii, `\u%04x\u%04x`, high, low)
		default:
			ascii = fmt.Appendf(ascii, `\u%04x`, r)
		}
	}
	return ascii
}
