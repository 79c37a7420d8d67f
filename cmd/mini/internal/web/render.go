package web

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"strconv"
	"sync"

	"github.com/minibench/mini/cmd/mini/internal/web/markup"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/unit"
	"github.com/minibench/mini/model"
)

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed assets/viewer.css
var styleSheet string

//go:embed assets/icon.svg
var icon string

//go:embed assets/viewer.js
var script string

// The templates are parsed when the first page is made, because other commands do not need them.
var (
	serverTemplates = sync.OnceValue(func() *template.Template { return parseTemplates(links{}) })
	fileTemplates   = sync.OnceValue(func() *template.Template { return parseTemplates(links{file: true}) })
)

// parseTemplates returns the templates with the addresses of l.
func parseTemplates(l links) *template.Template {
	funcs := template.FuncMap{
		"link": func() links { return l },
		"file": func() bool { return l.file },
		// Numbers.
		"percent": unit.Percent, "points": unit.Points,
		"count":    unit.Count,
		"plural":   func(n int, noun string) string { return text.Count(n, noun) },
		"cost":     func(c model.Cost, known bool) string { return unit.Cost(float64(c), known) },
		"dollars":  unit.Cost,
		"duration": unit.Seconds,
		"size":     func(n int) string { return unit.Size(int64(n)) },
		"add":      func(a, b int) int { return a + b },
		// Untrusted text.
		"plain":     func(v any) template.HTML { return plain(fmt.Sprint(v)) },
		"plaintext": func(s string) template.HTML { return markup.Text(s, markup.Options{}).HTML() },
		"words":     func(v any) template.HTML { return plain(words(fmt.Sprint(v))) },
		"diff":      func(s string) markup.Fold { return markup.Diff(s, markup.Options{Limit: maxItem}).Fold(foldPatch) },
		"prose":     func(s string) markup.Fold { return markup.Prose(s, markup.Options{Limit: maxItem}).Fold(foldLines) },
		"log":       func(s string) template.HTML { return markup.Output(s, markup.Options{Limit: maxItem}).HTML() },
		"shell":     func(s string) template.HTML { return plain(text.ShellQuote(s)) },
		"title":     text.Printable,
		"dict":      dict,
	}
	return template.Must(template.New("").Funcs(funcs).ParseFS(templateFiles, "templates/*.html"))
}

// foldPatch is the number of lines that a folded patch shows at its start and at its end.
const foldPatch = 200

// render writes a template with the addresses of l.
func render(w io.Writer, l links, name string, data any) error {
	if l.file {
		return fileTemplates().ExecuteTemplate(w, name, data)
	}
	return serverTemplates().ExecuteTemplate(w, name, data)
}

// dict returns a map of alternating names and values, to pass several values to a template.
func dict(pairs ...any) (map[string]any, error) {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("dict: %v is not a name", pairs[i])
		}
		m[name] = pairs[i+1]
	}
	return m, nil
}

// pvalue formats a p-value; nil is none.
func pvalue(p *float64) string {
	switch {
	case p == nil:
		return "-"
	case *p < 1e-12:
		return "< 1e-12"
	case *p < 0.001:
		return strconv.FormatFloat(*p, 'e', 1, 64)
	}
	return strconv.FormatFloat(*p, 'f', 3, 64)
}
