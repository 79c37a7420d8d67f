package mcp

import (
	"fmt"
	"strings"

	"github.com/minibench/mini/agent/tools"
	"github.com/minibench/mini/internal/lazyregexp"
)

// Tools are those of servers. A name that two of them have, or that taken says is
// another tool's, is put behind the server's; one with characters that no name may
// have gets others. The order is that of the servers and of their lists.
func Tools(taken func(name string) bool, servers ...*Server) []tools.Tool {
	count := map[string]int{}
	for _, s := range servers {
		for _, t := range s.offered {
			count[safe(t.Name)]++
		}
	}
	used := map[string]bool{}
	free := func(name string) bool { return !used[name] && !taken(name) && tools.CheckName(name) == nil }
	var list []tools.Tool
	for _, s := range servers {
		for _, t := range s.offered {
			name := safe(t.Name)
			if count[name] > 1 || !free(name) {
				name = safe(s.config.Name + "_" + name)
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

var unsafe = lazyregexp.New(`[^A-Za-z0-9_-]+`)

// safe is a name that a tool may have.
func safe(name string) string {
	name = strings.TrimLeft(unsafe.ReplaceAllString(name[:min(len(name), 4*tools.MaxName)], "_"), "_-")
	if name == "" {
		return "tool"
	}
	return name[:min(len(name), tools.MaxName)]
}

// line is a text of the server's as a short line.
func (s *Server) line(text string) string {
	return oneLine(s.clean(text), 80)
}

// oneLine is the beginning of a text without line ends and other characters that
// steer terminals, at most so many characters of it.
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

// firstSentence is that of a description.
func firstSentence(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if i := strings.Index(text, ". "); i > 0 {
		text = text[:i]
	}
	return strings.TrimSuffix(oneLine(text, 160), ".")
}
