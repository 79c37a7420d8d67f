package mcp

import (
	"fmt"
	"strings"

	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/internal/lazyregexp"
)

// Tools returns the tools of servers, in the order of the servers and of their
// lists. A tool whose name occurs more than once, or is taken, gets its server's
// name as a prefix and, if the prefixed name is taken, too, a number as a suffix.
// Characters that a tool name must not have are replaced. isTaken reports names
// of other tools.
func Tools(isTaken func(name string) bool, servers ...*Server) []tools.Tool {
	count := map[string]int{}
	for _, s := range servers {
		for _, t := range s.offered {
			count[safeName(t.Name)]++
		}
	}
	used := map[string]bool{}
	isFree := func(name string) bool { return !used[name] && !isTaken(name) && tools.CheckName(name) == nil }
	var list []tools.Tool
	for _, s := range servers {
		for _, t := range s.offered {
			name := safeName(t.Name)
			if count[name] > 1 || !isFree(name) {
				name = safeName(s.config.Name + "_" + name)
			}
			for n, base := 2, name; !isFree(name); n++ {
				number := fmt.Sprintf("_%d", n)
				name = base[:min(len(base), tools.MaxName-len(number))] + number
			}
			used[name] = true
			list = append(list, newTool(s, t, name))
		}
	}
	return list
}

var unsafeChars = lazyregexp.New(`[^A-Za-z0-9_-]+`)

// safeName returns a valid tool name that is like name: each sequence of other
// characters becomes _, then _ and - at the start are removed, and the rest is
// cut to tools.MaxName bytes. It returns "tool" if nothing is left.
func safeName(name string) string {
	name = strings.TrimLeft(unsafeChars.ReplaceAllString(name[:min(len(name), 4*tools.MaxName)], "_"), "_-")
	if name == "" {
		return "tool"
	}
	return name[:min(len(name), tools.MaxName)]
}

// shortLine sanitizes a text of the server and clips it to one line of 80
// characters.
func (s *Server) shortLine(text string) string {
	return oneLine(s.sanitize(text), 80)
}

// oneLine joins the words of a text by single spaces and clips the result to
// limit characters. Control characters and characters that change the text
// direction separate words, too.
func oneLine(text string, limit int) string {
	text = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x2028 || r == 0x2029 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return ' '
		}
		return r
	}, text)), " ")
	if runes := []rune(text); len(runes) > limit {
		return strings.TrimSpace(string(runes[:limit])) + "..."
	}
	return text
}

// firstSentence returns the first sentence of the first line of a description,
// clipped and without its period.
func firstSentence(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if i := strings.Index(text, ". "); i > 0 {
		text = text[:i]
	}
	return strings.TrimSuffix(oneLine(text, 160), ".")
}
