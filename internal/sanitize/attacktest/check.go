package attacktest

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Allowed says which control sequences a text may contain.
type Allowed int

// Allowed control sequences.
const (
	LineEnds Allowed = 1 << iota // LF
	Colours                      // SGR, reset in each line
)

// FindControl describes the first parts of a text that would control a terminal or make it
// display other text; it returns "" if there are none. It uses the parser of x/ansi,
// independently of the sanitizer.
func FindControl(s string, allowed Allowed) string {
	if !utf8.ValidString(s) {
		return "it is not UTF-8"
	}
	if problem := invalidRune(s, allowed); problem != "" {
		return problem
	}
	var problems []string
	report := func(format string, args ...any) {
		if len(problems) < 5 {
			problems = append(problems, fmt.Sprintf(format, args...))
		}
	}
	styled, printed := false, 0
	var p ansi.Parser
	p.SetParamsSize(32)
	p.SetDataSize(64)
	p.SetHandler(ansi.Handler{
		Print: func(rune) { printed++ },
		Execute: func(c byte) {
			switch {
			case c != '\n' || allowed&LineEnds == 0:
				report("control %#x", c)
			case styled:
				report("a line that does not end its colours")
			}
		},
		HandleCsi: func(cmd ansi.Cmd, params ansi.Params) {
			styled = len(params) > 0
			if cmd != 'm' || allowed&Colours == 0 || len(params) > 16 {
				report("CSI %v %q with %d parameters", params, rune(cmd.Final()), len(params))
			} else if param := unknownSGR(params); param >= 0 {
				report("SGR %d", param)
			}
		},
		HandleEsc: func(cmd ansi.Cmd) { report("ESC %q", rune(cmd.Final())) },
		HandleDcs: func(ansi.Cmd, ansi.Params, []byte) { report("DCS") },
		HandleOsc: func(cmd int, _ []byte) { report("OSC %d", cmd) },
		HandlePm:  func([]byte) { report("PM") },
		HandleApc: func([]byte) { report("APC") },
		HandleSos: func([]byte) { report("SOS") },
	})
	// An unfinished sequence would swallow the character after it.
	p.Parse([]byte(s + "|"))
	switch {
	case printed == 0 || p.State() != 0:
		report("a sequence without an end")
	case styled:
		report("colours without an end")
	}
	return strings.Join(problems, ", ")
}

// unknownSGR returns a parameter that is not a supported style, or -1.
func unknownSGR(params ansi.Params) int {
	supported := []int{0, 1, 2, 3, 4, 7, 22, 23, 24, 27, 39, 49}
	for i := 0; i < len(params); i++ {
		n := params[i].Param(0)
		switch {
		case n == 38 || n == 48:
			if i+1 >= len(params) {
				return n
			}
			skip := map[int]int{5: 2, 2: 4}[params[i+1].Param(0)]
			if skip == 0 || i+skip >= len(params) {
				return n
			}
			i += skip
		case n >= 30 && n <= 37, n >= 40 && n <= 47, n >= 90 && n <= 97, n >= 100 && n <= 107,
			slices.Contains(supported, n):
		default:
			return n
		}
	}
	return -1
}

// invalidRune describes the first character that affects terminals outside of a sequence; it
// returns "" if there is none.
func invalidRune(s string, allowed Allowed) string {
	marks, hasBase := 0, false
	for _, r := range s {
		switch {
		case r == '\n' && allowed&LineEnds != 0:
			marks, hasBase = 0, false
			continue
		case r == '\x1b' && allowed&Colours != 0: // checked by the parser
			continue
		case r != ' ' && r != 0x3000 && !unicode.IsPrint(r), unicode.Is(unicode.Cf, r),
			unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r), unicode.Is(unicode.Variation_Selector, r),
			r >= 0x1f3fb && r <= 0x1f3ff: // terminals disagree on their widths
			return fmt.Sprintf("%U", r)
		}
		if ansi.StringWidthWc(string(r)) > 0 && !unicode.Is(unicode.M, r) && (r < 0x1160 || r > 0x11ff) {
			marks, hasBase = 0, true
			continue
		}
		if marks++; !hasBase || marks > 2 {
			return fmt.Sprintf("%U as mark number %d of a sign", r, marks)
		}
	}
	return ""
}
