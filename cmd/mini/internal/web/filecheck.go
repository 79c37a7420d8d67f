package web

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/runner/compare"
)

// resultTable is the part of a file that programs read: the results of all attempts, and the
// statistics that the file shows of them.
type resultTable struct {
	Format     string              `json:"format"`
	Base       int                 `json:"base"`
	Missing    compare.MissingRule `json:"missing"`
	Runs       []tableRun          `json:"runs"`
	Statistics tableStatistics     `json:"statistics"`
}

type tableRun struct {
	Run        compare.Run `json:"run"`
	Instances  int         `json:"instances"`
	WithResult int         `json:"with_result"`
}

type tableStatistics struct {
	Runs       []compare.Summary `json:"runs"`
	Comparison *compare.Result   `json:"comparison,omitempty"`
	// Sentences are the lines about resolved instances, as the pages show them.
	Sentences []string `json:"sentences"`
}

const (
	tableID     = "results"
	tableFormat = "mini-html-1"
)

func (v *Viewer) newResultTable(o FileOptions) (*resultTable, error) {
	t := &resultTable{Format: tableFormat, Base: o.Base, Missing: o.Missing}
	for _, r := range v.runs {
		s, err := r.load()
		if err != nil {
			return nil, err
		}
		t.Runs = append(t.Runs, tableRun{Run: s.Compared, Instances: s.Summary.Instances, WithResult: s.Summary.WithResult})
	}
	var err error
	t.Statistics, err = t.compute()
	return t, err
}

// compute computes the statistics from the results.
func (t *resultTable) compute() (tableStatistics, error) {
	var s tableStatistics
	var runs []compare.Run
	for _, r := range t.Runs {
		runs = append(runs, r.Run)
		summary := compare.Summarize(r.Run, compare.Drop)
		s.Runs = append(s.Runs, summary)
		s.Sentences = append(s.Sentences, rateSentence(summary, r.Instances, r.WithResult)+".")
	}
	if len(runs) < 2 {
		return s, nil
	}
	if t.Base < 0 || t.Base >= len(runs) {
		return s, fmt.Errorf("the base is run %d of %d", t.Base, len(runs))
	}
	var err error
	if s.Comparison, err = compare.New(runs, compare.Options{Base: t.Base, Missing: t.Missing}); err != nil {
		return s, err
	}
	for _, p := range s.Comparison.Pairs {
		s.Sentences = append(s.Sentences, p.Sentence+".")
	}
	return s, nil
}

// CheckFile recomputes the statistics of a file that WriteFile has written, and compares them with
// those in the file and with the sentences that its pages show. It returns a description of what it
// has checked.
func CheckFile(r io.Reader) (string, error) {
	doc, err := html.Parse(r)
	if err != nil {
		return "", fmt.Errorf("parse HTML: %w", err)
	}
	var data string
	shown := map[string]bool{} // sentences
	for n := range doc.Descendants() {
		switch {
		case n.Data == "script" && attribute(n, "id") == tableID:
			data = cmp.Or(data, textOf(n))
		case slices.Contains(strings.Fields(attribute(n, "class")), "headline"):
			shown[textOf(n)] = true
		}
	}
	if data == "" {
		return "", errors.New("it has no table of results; mini report --html writes one")
	}
	var t resultTable
	if err := json.Unmarshal([]byte(data), &t); err != nil {
		return "", fmt.Errorf("read the table of results: %w", err)
	}
	if t.Format != tableFormat {
		return "", fmt.Errorf("the table of results has the format %q; this mini reads %s", text.Clip(text.Printable(t.Format), 40), tableFormat)
	}
	computed, err := t.compute()
	if err != nil {
		return "", fmt.Errorf("compute the statistics: %w", err)
	}
	stated, err := json.Marshal(t.Statistics)
	if err != nil {
		return "", err
	}
	own, err := json.Marshal(computed)
	if err != nil {
		return "", err
	}
	if !bytes.Equal(stated, own) {
		return "", errors.New("the statistics do not follow from the table of results")
	}
	for _, s := range computed.Sentences {
		if !shown[visible(s)] {
			return "", fmt.Errorf("no page shows the sentence %q, which follows from the table of results", s)
		}
	}
	attempts := 0
	for _, r := range t.Runs {
		for _, in := range r.Run.Instances {
			attempts += len(in.Attempts)
		}
	}
	return fmt.Sprintf("the statistics of %s follow from %s", text.Count(len(t.Runs), "run"), text.Count(attempts, "verdict")), nil
}

// visible returns a sentence as a browser shows it.
func visible(sentence string) string {
	doc, err := html.Parse(strings.NewReader(string(plain(sentence))))
	if err != nil {
		return sentence
	}
	return textOf(doc)
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// textOf returns the text of a node and what is in it.
func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}
