package logs

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// doctest parses the XML of the C++ framework doctest. A subcase passes if all its
// expressions succeed. doctest returns an error for XML that has no end tag or
// that encoding/xml rejects.
func doctest(t *Tests, text string, _ InstanceInfo) error {
	const end = "</doctest>"
	start := strings.Index(text, "<doctest")
	if start < 0 {
		return nil
	}
	text = xmlSpaces.Replace(text[start:])
	n := strings.Index(text, end)
	if n < 0 {
		return errors.New("doctest XML has no end tag")
	}
	d := doctestReport{tests: t}
	if err := d.read(text[:n+len(end)]); err != nil {
		return fmt.Errorf("parse doctest XML: %w", err)
	}
	return d.record()
}

// doctestReport is the parsed XML.
type doctestReport struct {
	tests    *Tests
	cases    []doctestCase    // in document order
	subcases []doctestSubcase // in document order
	open     []doctestElement // elements whose end tag has not been read
	failed   int              // number of failed expressions read so far
}

type doctestCase struct {
	name     string
	from, to int // range of the case's subcases of any depth, in doctestReport.subcases
}

type doctestSubcase struct {
	name   string
	failed bool
}

// doctestElement is an element whose end tag has not been read.
type doctestElement struct {
	index  int    // in doctestReport.cases or subcases
	kind   string // name of the tag
	failed int    // doctestReport.failed at the start of the element
}

func (d *doctestReport) read(text string) error {
	dec := xml.NewDecoder(strings.NewReader(text))
	for {
		tok, err := dec.Token()
		if err == io.EOF { //nolint:errorlint // Token returns it bare
			return nil
		}
		if err != nil {
			return err
		}
		switch el := tok.(type) {
		case xml.StartElement:
			d.start(el)
		case xml.EndElement:
			d.end()
		}
	}
}

func (d *doctestReport) start(el xml.StartElement) {
	open := doctestElement{failed: d.failed}
	// The root is never a test case.
	if el.Name.Space == "" && len(d.open) > 0 {
		open.kind = el.Name.Local
	}
	switch open.kind {
	case "TestCase":
		open.index = len(d.cases)
		d.cases = append(d.cases, doctestCase{name: attribute(el, "name"), from: len(d.subcases)})
	case "SubCase":
		open.index = len(d.subcases)
		d.subcases = append(d.subcases, doctestSubcase{name: attribute(el, "name")})
	case "Expression":
		if attribute(el, "success") != "true" {
			d.failed++
			open.failed++ // a failure counts for the ancestors of the expression
		}
	}
	d.open = append(d.open, open)
}

// attribute returns an attribute. A missing one is "None", as Python prints it.
func attribute(el xml.StartElement, name string) string {
	for _, a := range el.Attr {
		if a.Name == (xml.Name{Local: name}) {
			return a.Value
		}
	}
	return "None"
}

// xmlSpaces normalizes white space as XML requires in the values of attributes. doctest
// applies it to the whole text, because white space does not matter elsewhere.
var xmlSpaces = strings.NewReplacer("\t", " ", "\n", " ", "\r", " ")

func (d *doctestReport) end() {
	open := d.open[len(d.open)-1]
	d.open = d.open[:len(d.open)-1]
	switch open.kind {
	case "TestCase":
		d.cases[open.index].to = len(d.subcases)
	case "SubCase":
		d.subcases[open.index].failed = d.failed > open.failed
	}
}

func (d *doctestReport) record() error {
	for _, c := range d.cases {
		for _, sub := range d.subcases[c.from:c.to] {
			s := Passed
			if sub.failed {
				s = Failed
			}
			if err := d.tests.join(s, " > ", c.name, sub.name); err != nil {
				return err
			}
		}
	}
	return nil
}
