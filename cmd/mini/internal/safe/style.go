package safe

import (
	"strconv"
	"strings"
)

// style is how a sign looks: all that is let through of a sequence's wishes.
// What blinks or hides is not.
type style struct {
	fore, back colour
	traits     trait
}

type trait uint8

const (
	bold trait = 1 << iota
	faint
	italic
	underline
	reverse
)

// colour is one of the palette's, or of 24 bits; zero is the terminal's own.
type colour uint32

const (
	ofPalette colour = 1 << 24
	ofBits    colour = 2 << 24
)

// switches are the codes that stand alone.
var switches = [...]struct {
	code    int
	on, off trait
}{
	{1, bold, 0},
	{2, faint, 0},
	{3, italic, 0},
	{4, underline, 0},
	{7, reverse, 0},
	{21, underline, 0},
	{22, 0, bold | faint},
	{23, 0, italic},
	{24, 0, underline},
	{27, 0, reverse},
}

// render changes the style as the parameters of an SGR sequence say.
func (s *style) render(params string) {
	fields := strings.Split(params, ";")
	for len(fields) > 0 {
		first, sub, hasSub := strings.Cut(fields[0], ":")
		fields = fields[1:]
		code, ok := number(first)
		if !ok {
			return
		}
		switch {
		case code == 38 || code == 48 || code == 58:
			parts := strings.Split(sub, ":")
			if !hasSub {
				parts = fields
			}
			c, used := mixed(parts, hasSub)
			if !hasSub {
				fields = fields[used:]
			}
			switch {
			case used == 0: // what follows would be misread
				return
			case code == 38:
				s.fore = c
			case code == 48:
				s.back = c
			}
		case code == 4 && hasSub:
			s.traits &^= underline
			if sub != "0" {
				s.traits |= underline
			}
		case hasSub:
		case code == 0:
			*s = style{}
		case code >= 30 && code <= 37:
			s.fore = ofPalette + colour(code-30)
		case code >= 90 && code <= 97:
			s.fore = ofPalette + colour(code-90+8)
		case code >= 40 && code <= 47:
			s.back = ofPalette + colour(code-40)
		case code >= 100 && code <= 107:
			s.back = ofPalette + colour(code-100+8)
		case code == 39:
			s.fore = 0
		case code == 49:
			s.back = 0
		}
		for _, t := range switches {
			if t.code == code && !hasSub {
				s.traits = s.traits&^t.off | t.on
			}
		}
	}
}

// mixed reads a colour after its 38 or 48: 5 and a number, or 2 and three. Used
// says how many parts it took, none where there is no colour. In a list of
// its own, the three may come after the name of a colour space.
func mixed(parts []string, own bool) (c colour, used int) {
	need := map[string]int{"5": 2, "2": 4}[parts0(parts)]
	if need == 0 || len(parts) < need {
		return 0, 0
	}
	values := parts[1:need]
	if own && need == 4 && len(parts) >= 5 {
		values = parts[2:5]
	}
	c = ofPalette
	if need == 4 {
		c = ofBits
	}
	var bits colour
	for _, v := range values {
		n, ok := number(v)
		if !ok || n > 255 {
			return 0, 0
		}
		bits = bits<<8 | colour(n)
	}
	return c | bits, need
}

func parts0(parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	return parts[0]
}

// number is a parameter; one that is left out is zero.
func number(s string) (int, bool) {
	if s == "" {
		return 0, true
	}
	n, err := strconv.ParseUint(s, 10, 16)
	return int(n), err == nil
}

// sequence turns to the style from another one.
func (s style) sequence(from style) string {
	if s == (style{}) {
		return reset
	}
	var codes []string
	if from != (style{}) {
		codes = append(codes, "0")
	}
	for _, t := range switches[:5] {
		if s.traits&t.on != 0 {
			codes = append(codes, strconv.Itoa(t.code))
		}
	}
	codes = s.fore.append(codes, 30)
	codes = s.back.append(codes, 40)
	return "\x1b[" + strings.Join(codes, ";") + "m"
}

const reset = "\x1b[m"

// append adds the codes for a colour; base is 30 or 40.
func (c colour) append(codes []string, base int) []string {
	n := int(c &^ (ofPalette | ofBits))
	switch {
	case c == 0:
		return codes
	case c&ofBits != 0:
		return append(codes, strconv.Itoa(base+8), "2", strconv.Itoa(n>>16), strconv.Itoa(n>>8&255), strconv.Itoa(n&255))
	case n < 8:
		return append(codes, strconv.Itoa(base+n))
	case n < 16:
		return append(codes, strconv.Itoa(base+60+n-8))
	}
	return append(codes, strconv.Itoa(base+8), "5", strconv.Itoa(n))
}
