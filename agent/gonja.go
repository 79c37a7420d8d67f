package agent

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	controlStructures "github.com/nikolalohinski/gonja/v2/builtins/control_structures"
	"github.com/nikolalohinski/gonja/v2/config"
	"github.com/nikolalohinski/gonja/v2/exec"
	"github.com/nikolalohinski/gonja/v2/loaders"
	"github.com/nikolalohinski/gonja/v2/nodes"
	"github.com/nikolalohinski/gonja/v2/parser"
	"github.com/nikolalohinski/gonja/v2/tokens"

	"github.com/minibench/mini/internal/lazyregexp"
)

// maxJinjaOutput is the limit of a rendered template in bytes.
const maxJinjaOutput = 16 << 20

// jinjaTemplate is a template in Jinja. Its variables are those of mini-swe-agent. gonja
// renders it, with the statements if, for, set and raw; it reads no files.
type jinjaTemplate struct {
	field, text string
	tmpl        *exec.Template
	names       map[string]int // the variables that a rendering can need, with the line of their first use
	lines       []int          // the lines of text by the lines that gonja counts
}

// jinjaEnvironment returns what templates can use. It is made when the first template in
// Jinja is parsed.
var jinjaEnvironment = sync.OnceValue(func() *exec.Environment {
	statements := map[string]parser.ControlStructureParser{}
	for _, name := range []string{"if", "for", "set", "raw"} {
		if parse, ok := controlStructures.All.Get(name); ok {
			statements[name] = withLine(parse)
		}
	}
	return &exec.Environment{
		Filters: exec.NewFilterSet(jinjaFilters()), Tests: exec.NewTestSet(jinjaTests()), Methods: jinjaMethods(),
		ControlStructures: exec.NewControlStructureSet(statements), Context: exec.NewContext(map[string]any{"none": nil}),
	}
})

// withLine adds a line to the errors of a statement that have none.
func withLine(parse parser.ControlStructureParser) parser.ControlStructureParser {
	return func(p, args *parser.Parser) (nodes.ControlStructure, error) {
		line := p.Current().Line // of the text after the statement
		statement, err := parse(p, args)
		if e, ok := errors.AsType[*parser.SyntaxError](err); ok && e.Line == 0 {
			e.Line = line
		} else if err != nil && !ok {
			err = &parser.SyntaxError{Message: err.Error(), Line: line}
		}
		return statement, err
	}
}

func parseJinja(field, text string) (_ renderer, err error) {
	t := &jinjaTemplate{field: field, text: text}
	defer t.recoverPanic(&err)
	cfg := config.New()
	cfg.StrictUndefined = true
	text = strings.ReplaceAll(text, "\r\n", "\n")
	joined := joinLines(text, lex(text, cfg))
	for i, line := 0, 1; ; i++ {
		t.lines = append(t.lines, line)
		end := strings.IndexByte(joined[i:], '\n')
		if end < 0 {
			break
		}
		line += strings.Count(text[i:i+end+1], "\n")
		i += end
	}
	all := lex(joined, cfg)
	if last := all[len(all)-1]; last.Type == tokens.Error {
		return nil, &FieldError{Field: field, Line: 1 + strings.Count(text[:last.Pos], "\n"), Err: fmt.Errorf("syntax error: %.80s", last.Val)}
	}
	t.names = namesOf(text, all)
	loader, err := loaders.NewMemoryLoader(map[string]string{"/": joined})
	if err == nil {
		t.tmpl, err = exec.NewTemplate("/", cfg, loader, jinjaEnvironment())
	}
	if e, ok := errors.AsType[*parser.SyntaxError](err); ok {
		return nil, t.errorf(e.Line, "%s", jinjaWords.Replace(strings.TrimSuffix(e.Message, ".")))
	}
	if err != nil {
		return nil, t.errorf(0, "%.200s", err.Error())
	}
	return *t, nil
}

// jinjaWords replaces words of the library in errors.
var jinjaWords = strings.NewReplacer("ControlStructure", "statement", "not found (or beginning not provided)", "is unknown or not open; if, for, set and raw are known")

// errorf returns an error at a line that gonja counted; 0 if it is not known.
func (t jinjaTemplate) errorf(line int, format string, args ...any) *FieldError {
	if line > 0 {
		line = t.lines[min(line, len(t.lines))-1]
	}
	return &FieldError{Field: t.field, Line: line, Err: fmt.Errorf(format, args...)}
}

// recoverPanic turns a panic of the library into an error.
func (t *jinjaTemplate) recoverPanic(err *error) {
	if r := recover(); r != nil {
		*err = t.errorf(0, "the template cannot be rendered: %.200s", fmt.Sprint(r))
	}
}

// lex returns the tokens of a template without white space. A token that is an error is
// the last one.
func lex(text string, cfg *config.Config) []*tokens.Token {
	s := tokens.LexAll(text, cfg)
	var all []*tokens.Token
	for !s.End() {
		all = append(all, s.Next())
	}
	return append(all, s.Current())
}

// joinLines replaces the line ends in tags, except those in strings, by spaces, because the
// library does not take them for white space.
func joinLines(text string, all []*tokens.Token) string {
	b, begin := []byte(text), 0
	for _, tok := range all {
		switch tok.Type {
		case tokens.VariableBegin, tokens.BlockBegin:
			begin = tok.Pos
		case tokens.VariableEnd, tokens.BlockEnd:
			quote := byte(0)
			for i := begin; i < tok.Pos+len(tok.Val); i++ {
				switch c := b[i]; {
				case quote != 0 && c == '\\':
					i++
				case quote != 0 && c == quote:
					quote = 0
				case quote == 0 && (c == '"' || c == '\''):
					quote = c
				case quote == 0 && c == '\n':
					b[i] = ' '
				}
			}
		}
	}
	return string(b)
}

// namesOf returns the variables that a rendering can need: all that are not assigned by the
// template or tested with "is defined" or default. It looks at the tokens, because the
// library does not walk into the bodies of statements.
func namesOf(text string, all []*tokens.Token) map[string]int {
	used, given, inFor := map[string]int{}, map[string]bool{"loop": true, "none": true}, false
	at := func(i int) *tokens.Token {
		if i < 0 || i >= len(all) {
			return &tokens.Token{Type: tokens.EOF}
		}
		return all[i]
	}
	for i, tok := range all {
		prev, next := at(i-1), at(i+1)
		switch {
		case tok.Type == tokens.In:
			inFor = false
		case tok.Type != tokens.Name:
		case prev.Type == tokens.BlockBegin:
			inFor = tok.Val == "for"
		case inFor, prev.Val == "set" && at(i-2).Type == tokens.BlockBegin:
			given[tok.Val] = true
		case prev.Type == tokens.Dot, prev.Type == tokens.Pipe, next.Type == tokens.Assign: // attribute, filter, keyword
		case prev.Type == tokens.Is, prev.Type == tokens.Not && at(i-2).Type == tokens.Is: // test
		case isJinjaKeyword[tok.Val]:
		default:
			test := next
			if next.Type == tokens.Is || next.Type == tokens.Pipe {
				if test = at(i + 2); test.Type == tokens.Not {
					test = at(i + 3)
				}
			}
			if test != next && isGiving[test.Val] {
				given[tok.Val] = true
			}
			if used[tok.Val] == 0 {
				used[tok.Val] = 1 + strings.Count(text[:tok.Pos], "\n")
			}
		}
	}
	for name := range given {
		delete(used, name)
	}
	return used
}

var (
	isJinjaKeyword = map[string]bool{"if": true, "else": true, "true": true, "True": true, "false": true, "False": true, "nil": true, "None": true, "recursive": true}
	isGiving       = map[string]bool{"defined": true, "undefined": true, "default": true, "d": true}
)

func (t jinjaTemplate) render(vars map[string]any) (string, error) {
	return t.execute(t.variables(vars))
}

func (t jinjaTemplate) execute(variables map[string]any) (_ string, err error) {
	defer t.recoverPanic(&err)
	var b boundedBuilder
	if err := t.tmpl.Execute(&b, exec.NewContext(variables)); err != nil {
		return "", t.renderError(err)
	}
	return b.text.String(), nil
}

// boundedBuilder is a text of at most maxJinjaOutput bytes.
type boundedBuilder struct{ text strings.Builder }

func (b *boundedBuilder) Write(p []byte) (int, error) {
	if b.text.Len()+len(p) > maxJinjaOutput {
		return 0, fmt.Errorf("the result is longer than %d MB", maxJinjaOutput>>20)
	}
	return b.text.Write(p)
}

// renderLine matches the words that the library adds to an error of a statement or an expression.
var renderLine = lazyregexp.New(`^Unable to (?:render|execute) \w+ at line (\d+): `)

// renderError returns the innermost cause of an error, with the innermost line.
func (t jinjaTemplate) renderError(err error) *FieldError {
	line := 0
	for {
		if m := renderLine.FindStringSubmatch(err.Error()); m != nil {
			line, _ = strconv.Atoi(m[1]) // the pattern matched digits
		}
		cause := errors.Unwrap(err)
		if v, ok := err.(*exec.Value); ok { //nolint:errorlint // one step of the chain
			cause, _ = v.Interface().(error)
		}
		if cause == nil {
			break
		}
		err = cause
	}
	text := err.Error()
	if i := strings.LastIndex(text, ": "); i >= 0 {
		text = text[i+2:]
	}
	return t.errorf(line, "%.200s", text)
}
