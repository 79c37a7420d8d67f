package grade

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
)

// object is a JSON object whose keys have an order.
type object []member

type member struct {
	name  string
	value any
}

// What a level of the official files is indented by.
const (
	wide   = "    " // of reports and summaries
	narrow = "  "   // of run.json
)

// pyJSON writes JSON as Python's json.dumps does with an indent: files are to be
// the same, byte for byte, as those of the official harness. It knows the
// kinds of values that these files have.
func pyJSON(v any, indent string) []byte {
	var s strings.Builder
	writePy(&s, v, "\n", indent)
	return []byte(s.String())
}

// writePy writes a value; newline is the line end with the indentation of the
// place where it stands.
func writePy(s *strings.Builder, v any, newline, indent string) {
	switch v := v.(type) {
	case nil:
		s.WriteString("null")
	case bool:
		s.WriteString(strconv.FormatBool(v))
	case int:
		s.WriteString(strconv.Itoa(v))
	case string:
		writePyString(s, v)
	case []string:
		if len(v) == 0 {
			s.WriteString("[]")
			return
		}
		before := "["
		for _, item := range v {
			s.WriteString(before + newline + indent)
			writePyString(s, item)
			before = ","
		}
		s.WriteString(newline + "]")
	case object:
		if len(v) == 0 {
			s.WriteString("{}")
			return
		}
		before := "{"
		for _, m := range v {
			s.WriteString(before + newline + indent)
			writePyString(s, m.name)
			s.WriteString(": ")
			writePy(s, m.value, newline+indent, indent)
			before = ","
		}
		s.WriteString(newline + "}")
	default:
		panic(fmt.Sprintf("no way to write %T as JSON", v)) // a mistake of this package
	}
}

// writePyString writes a string in ASCII. What Unicode has beyond 16 bits is
// two escapes.
func writePyString(s *strings.Builder, text string) {
	s.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			s.WriteByte('\\')
			s.WriteRune(r)
		case r == '\n':
			s.WriteString(`\n`)
		case r == '\r':
			s.WriteString(`\r`)
		case r == '\t':
			s.WriteString(`\t`)
		case r == '\f':
			s.WriteString(`\f`)
		case r == '\b':
			s.WriteString(`\b`)
		case ' ' <= r && r <= '~':
			s.WriteByte(byte(r))
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(s, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(s, `\u%04x`, r)
		}
	}
	s.WriteByte('"')
}
