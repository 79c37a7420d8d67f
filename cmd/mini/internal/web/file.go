package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/minibench/mini/cmd/mini/internal/web/chart"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner/compare"
)

// FileOptions configures WriteFile.
type FileOptions struct {
	Base    int                 // number of the run that the others are compared with
	Missing compare.MissingRule // Drop if empty
	Steps   StepChoice          // attempts whose steps the file holds
	// Limit bounds the packed steps with FitSteps, in bytes; 0 means DefaultLimit.
	Limit int
}

// DefaultLimit is the default of FileOptions.Limit.
const DefaultLimit = 20 << 20

// Held says what a file holds.
type Held struct {
	Runs     int
	Attempts int // whose steps the file holds
	Of       int // all attempts
}

// WriteFile writes all pages into one HTML file, which loads nothing. It writes the same bytes for
// the same runs. The steps of an attempt are packed, and the script of the file unpacks them; all
// other pages can be read without it.
func (v *Viewer) WriteFile(ctx context.Context, w io.Writer, o FileOptions) (Held, error) {
	if o.Missing == "" {
		o.Missing = compare.Drop
	}
	if o.Limit == 0 {
		o.Limit = DefaultLimit
	}
	for _, r := range v.all() { // all pages show the same state of a run that is working
		if _, err := r.load(); err != nil {
			return Held{}, err
		}
		r.freeze()
	}
	f := &fileWriter{ctx: ctx, viewer: v, options: o, w: w}
	f.head()
	f.overview()
	f.instances()
	held := f.attempts()
	f.text(`<footer class="holds"><a href="#home">Runs</a> <a href="#holds">What this file holds</a></footer>` + "\n")
	f.render("help", nil)
	f.text("<script>" + script + "</script>\n</body>\n</html>\n")
	if f.err != nil {
		return held, fmt.Errorf("write the pages: %w", f.err)
	}
	return held, nil
}

// fileWriter writes a file. After an error it writes nothing.
type fileWriter struct {
	ctx     context.Context //nolint:containedctx // of WriteFile
	viewer  *Viewer
	options FileOptions
	w       io.Writer
	err     error
}

// filePolicy returns the Content-Security-Policy of a file with a script and a style sheet. It
// also forbids all requests.
func filePolicy(script, style string) string {
	return "default-src 'none'; script-src " + hashSource(script) + "; style-src " + hashSource(style) + "; " +
		"base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types mini"
}

func hashSource(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// head writes the start of the file. The script and the style sheet are not in templates, because
// html/template changes them, and the policy names their hashes.
func (f *fileWriter) head() {
	style := styleSheet + chart.CSS
	var names []string
	for _, r := range f.viewer.all() {
		names = append(names, r.Name)
	}
	title := html.EscapeString(f.redact(text.Printable("mini: " + strings.Join(names, ", "))))
	f.text(`<!doctype html>
<html lang="en" data-file>
<head>
<meta http-equiv="Content-Security-Policy" content="` + filePolicy(script, style) + `">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>` + title + `</title>
<style>` + style + `</style>
</head>
<body>
`)
}

// overview writes the list of runs, the comparison and the pages of the runs.
func (f *fileWriter) overview() {
	var runs []func()
	for _, r := range f.viewer.all() {
		runs = append(runs, func() {
			page, err := f.viewer.newRunPage(f.ctx, r, "", "")
			f.fail(err)
			f.page(links{file: true}.Run(r), "run", page)
		})
	}
	home := func() {
		f.page(links{file: true}.Home(), "home", f.viewer.newHomePage("", ""))
	}
	if len(runs) == 1 {
		runs[0]()
		home()
	} else {
		f.comparison()
		home()
		for _, write := range runs {
			write()
		}
	}
	f.table()
}

// comparison writes the comparison, and a page for each instance that it lists.
func (f *fileWriter) comparison() {
	page, err := f.viewer.newComparePage(f.viewer.all(), f.options.Base, f.options.Missing)
	f.fail(err)
	f.page(links{file: true}.Compare(nil), "compare", page)
	if f.err != nil {
		return
	}
	written := map[string]bool{}
	for _, s := range page.Sections {
		if !s.HasInstances || len(s.Rows) == 0 {
			continue
		}
		for _, row := range s.Rows[1:] {
			if written[row[0]] {
				continue
			}
			written[row[0]] = true
			in, err := f.viewer.newCompareInstancePage(f.viewer.all(), row[0])
			f.fail(err)
			if err == nil && f.options.Steps == NoSteps {
				for i := range in.Columns {
					in.Columns[i].Parts = nil
				}
			}
			f.page(links{file: true}.CompareInstance(nil, row[0]), "compare-instance", in)
		}
	}
}

// table writes the results that the statistics of the file are made of, for programs.
func (f *fileWriter) table() {
	if f.err != nil {
		return
	}
	t, err := f.viewer.newResultTable(f.options)
	f.fail(err)
	data, err := json.Marshal(t)
	f.fail(err)
	f.text(`<script type="application/json" id="` + tableID + `">` + f.redact(string(data)) + "</script>\n")
}

// instances writes a page for each instance.
func (f *fileWriter) instances() {
	for _, r := range f.viewer.all() {
		s, err := r.load()
		f.fail(err)
		for _, in := range s.Run.Instances {
			page, err := f.viewer.newInstancePage(r, in.ID)
			f.fail(err)
			if f.err != nil {
				return
			}
			for i := range page.Verdicts {
				if page.Verdicts[i].Class == "resolved" {
					page.Verdicts[i].LogTail = "" // a long log that says nothing new
				}
			}
			f.page(links{file: true}.Instance(r, in.ID), "instance", page)
		}
	}
}

// page writes a page with its header. The address is a fragment.
func (f *fileWriter) page(address, name string, data any) {
	f.open(address)
	f.render(name+"-top", data)
	f.text(`<div class="main">` + "\n")
	f.render(name+"-body", data)
	f.text("</div></section>\n")
}

func (f *fileWriter) open(address string) {
	f.text(`<section class="page" id="` + html.EscapeString(strings.TrimPrefix(address, "#")) + `">` + "\n")
}

// attempts writes the pages of the attempts, with their steps as far as the options ask for them,
// and a page that lists what is left out.
func (f *fileWriter) attempts() Held {
	all, err := f.viewer.allAttempts()
	f.fail(err)
	held := Held{Runs: len(f.viewer.all()), Of: len(all)}
	budget := stepBudget{choice: f.options.Steps, rest: f.options.Limit}
	var left []*attemptPage
	for i, a := range all {
		if f.err != nil {
			return held
		}
		page, _, err := f.viewer.newAttemptHead(a.run, a.id, a.attempt)
		f.fail(err)
		var packed []byte
		if budget.wants(a) && page != nil && page.Attempt.Journal != "" {
			packed = f.pack(a)
			if !budget.take(len(packed)) {
				packed = nil
			}
		}
		f.open(links{file: true}.Attempt(a.run, a.id, a.attempt))
		f.render("attempt-top", page)
		f.text(`<div class="main with-outline">` + "\n")
		f.render("attempt-packed", map[string]any{"Page": page, "Held": packed != nil})
		f.text("</div>\n")
		if packed != nil {
			held.Attempts++
			f.text(fmt.Sprintf(`<script type="text/plain" id="b%d">%s</script>`+"\n", i, packed))
		} else if page != nil {
			left = append(left, page)
		}
		f.text("</section>\n")
	}
	f.page("#holds", "holds", &holdsPage{
		Runs: f.viewer.all(), Held: held, Left: left, Steps: f.options.Steps, Limit: f.options.Limit,
	})
	return held
}

// holdsPage is the data of the page that says what a file holds.
type holdsPage struct {
	Runs  []*run
	Held  Held
	Left  []*attemptPage // whose steps are left out
	Steps StepChoice
	Limit int
}

// pack returns the page of an attempt, compressed and encoded.
func (f *fileWriter) pack(a fileAttempt) []byte {
	page, err := f.viewer.newAttemptPage(a.run, a.id, a.attempt, "", "", true)
	if err != nil {
		return nil // its journal cannot be read; the page says that the steps are left out
	}
	page.Live = false
	var b, packed bytes.Buffer
	f.fail(render(&b, links{file: true}, "attempt-body", page))
	encoder := base64.NewEncoder(base64.StdEncoding, &packed)
	compressor := gzip.NewWriter(encoder)
	_, err = io.WriteString(compressor, f.redact(b.String()))
	f.fail(err)
	f.fail(compressor.Close())
	f.fail(encoder.Close())
	return packed.Bytes()
}

// render writes a template, without secrets.
func (f *fileWriter) render(name string, data any) {
	if f.err != nil {
		return
	}
	var b bytes.Buffer
	f.fail(render(&b, links{file: true}, name, data))
	f.text(f.redact(b.String()))
}

// redact removes secrets. html/template writes a plus sign as a reference, which would hide a
// secret; in text and in quoted attributes the sign means the same.
func (f *fileWriter) redact(page string) string {
	if f.viewer.options.Redact == nil {
		return page
	}
	return string(f.viewer.options.Redact([]byte(strings.ReplaceAll(page, "&#43;", "+"))))
}

func (f *fileWriter) text(s string) {
	if f.err == nil {
		_, f.err = io.WriteString(f.w, s)
	}
}

func (f *fileWriter) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}
