package mcp

import (
	"fmt"
	"strings"

	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/internal/lazyregexp"
)

// Tools returns the tools of servers, in the order of the servers and of their
// lists. A name that two servers have, or for which taken returns true, is
// prefixed with the server's name. Characters that a tool's name must not have
// are replaced.
func Tools(taken func(name string) bool, servers ...*Server) []tools.Tool {
	count := map[string]int{}
	for _, s := range servers {
		for _, t := range s.offered {
			count[safeName(t.Name)]++
		}
	}
	used := map[string]bool{}
	free := func(name string) bool { return !used[name] && !taken(name) && tools.CheckName(name) == nil }
	var list []tools.Tool
	for _, s := range servers {
		for _, t := range s.offered {
			name := safeName(t.Name)
			if count[name] > 1 || !free(name) {
				name = safeName(s.config.Name + "_" + name)
			}
			for n, first := 2, name; !free(name); n++ {
				number := fmt.Sprintf("_%d", n)
				name = first[:min(len(first), tools.MaxName-len(number))] + number
			}
			used[name] = true
			list = append(list, newTool(s, t, name))
		}
	}
	return list
}

var unsafeChars = lazyregexp.New(`[^A-Za-z0-9_-]+`)

// safeName replaces the characters that a tool's name must not have.
func safeName(name string) string {
	name = strings.TrimLeft(unsafeChars.ReplaceAllString(name[:min(len(name), 4*tools.MaxName)], "_"), "_-")
	if name == "" {
		return "tool"
	}
	return name[:min(len(name), tools.MaxName)]
}

// shortLine sanitizes a text of the server and clips it to one short line.
func (s *Server) shortLine(text string) string {
	return oneLine(s.sanitize(text), 80)
}

// oneLine returns at most most characters of a text, without line breaks,
// control characters and characters that change the direction of text.
func oneLine(text string, most int) string {
	text = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0x2028 || r == 0x2029 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return ' '
		}
		return r
	}, text)), " ")
	if runes := []rune(text); len(runes) > most {
		return strings.TrimSpace(string(runes[:most])) + "..."
	}
	return text
}

// firstSentence returns the first sentence of a description.
func firstSentence(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if i := strings.Index(text, ". "); i > 0 {
		text = text[:i]
	}
	return strings.TrimSuffix(oneLine(text, 160), ".")
}
