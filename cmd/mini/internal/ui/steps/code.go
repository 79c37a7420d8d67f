package steps

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// language is what a highlighter knows of a programming language.
type language struct {
	comment  string // begins a comment that ends with the line
	blocks   [][2]string
	quotes   string
	keywords map[string]bool
}

func newLanguage(comment, quotes, keywords string, blocks ...[2]string) *language {
	l := &language{comment: comment, quotes: quotes, blocks: blocks, keywords: map[string]bool{}}
	for _, word := range strings.Fields(keywords) {
		l.keywords[word] = true
	}
	return l
}

// languageOf returns the language of a code block by the name after its fence; nil if it is unknown.
func languageOf(name string) *language {
	name, _, _ = strings.Cut(strings.ToLower(name), " ")
	block := [2]string{"/*", "*/"}
	switch name {
	case "python", "py", "python3":
		return newLanguage("#", `"'`, "and as assert async await break class continue def del elif else except False finally for from global if import in "+
			"is lambda None nonlocal not or pass raise return True try while with yield self", [2]string{`"""`, `"""`}, [2]string{"'''", "'''"})
	case "go", "golang":
		return newLanguage("//", "\"'`", "break case chan const continue default defer else fallthrough for func go goto if import interface map nil "+
			"package range return select struct switch type var true false", block)
	case "js", "jsx", "javascript", "ts", "tsx", "typescript":
		return newLanguage("//", "\"'`", "async await break case catch class const continue default delete do else export extends false finally for from "+
			"function if import in instanceof interface let new null of return static super switch this throw true try type typeof undefined var while yield", block)
	case "c", "h", "cpp", "c++", "java", "rust", "rs", "cs", "csharp", "kotlin", "swift", "php", "scala":
		return newLanguage("//", `"`, "auto bool break case catch char class const continue default do double else enum extends false final float fn for "+
			"fun func if impl implements import in int interface let long match mod mut namespace new null nullptr private protected pub public return "+
			"self short signed sizeof static struct super switch template this throw trait true try typedef union unsigned use using val var virtual void where while", block)
	case "bash", "sh", "shell", "zsh":
		return newLanguage("#", `"'`, "case do done elif else esac export fi for function if in local return set then until while")
	case "ruby", "rb":
		return newLanguage("#", `"'`, "begin class def do else elsif end ensure false if module nil require rescue return self true unless while yield")
	case "yaml", "yml", "toml", "ini", "dockerfile", "makefile":
		return newLanguage("#", `"'`, "true false null FROM RUN COPY ENV CMD ENTRYPOINT WORKDIR ARG")
	case "json", "jsonc":
		return newLanguage("//", `"`, "true false null")
	case "sql":
		return newLanguage("--", "'", "select from where insert into values update set delete create table alter drop join left right inner outer on and or "+
			"not null as order by group having limit SELECT FROM WHERE INSERT INTO VALUES UPDATE SET DELETE CREATE TABLE ALTER DROP JOIN LEFT RIGHT INNER "+
			"OUTER ON AND OR NOT NULL AS ORDER BY GROUP HAVING LIMIT", block)
	}
	return nil
}

// highlighter colours the lines of a code block: comments, strings, keywords and numbers. It does
// not parse, and changes no text.
type highlighter struct {
	language *language
	blockEnd string // of the open comment or string that may have several lines
	style    func(string) string
}

// line colours the next line.
func (h *highlighter) line(line string) string {
	if h.language == nil {
		return line
	}
	var b strings.Builder
	for line != "" {
		n, style := h.token(line)
		b.WriteString(style(line[:n]))
		line = line[n:]
	}
	return b.String()
}

// token returns the length and the style of the first token of a line.
func (h *highlighter) token(line string) (n int, style func(string) string) {
	if h.blockEnd != "" {
		return h.untilBlockEnd(line, 0)
	}
	for _, block := range h.language.blocks {
		if strings.HasPrefix(line, block[0]) {
			h.blockEnd, h.style = block[1], Faint
			if block[0] == block[1] {
				h.style = Colour(ansi.Green)
			}
			return h.untilBlockEnd(line, len(block[0]))
		}
	}
	first, size := utf8.DecodeRuneInString(line)
	isWord := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
	switch {
	case strings.HasPrefix(line, h.language.comment):
		return len(line), Faint
	case strings.ContainsRune(h.language.quotes, first):
		for i := size; i < len(line); i++ {
			switch line[i] {
			case '\\':
				i++
			case line[0]:
				return i + 1, Colour(ansi.Green)
			}
		}
		return len(line), Colour(ansi.Green)
	case isWord(first):
		word := line[:len(line)-len(strings.TrimLeftFunc(line, isWord))]
		switch {
		case h.language.keywords[word]:
			return len(word), Colour(ansi.Magenta)
		case unicode.IsDigit(first):
			return len(word), Colour(ansi.Cyan)
		}
		return len(word), Unstyled
	}
	return size, Unstyled
}

// untilBlockEnd returns the part of a line to the end of the open block, after its first bytes.
func (h *highlighter) untilBlockEnd(line string, from int) (int, func(string) string) {
	style, end := h.style, strings.Index(line[from:], h.blockEnd)
	if end < 0 {
		return len(line), style
	}
	n := from + end + len(h.blockEnd)
	h.blockEnd = ""
	return n, style
}
