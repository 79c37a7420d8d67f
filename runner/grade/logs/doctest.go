package logs

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// doctest parses the XML of the C++ framework doctest. A subcase passes if all
// its expressions succeed. XML that encoding/xml rejects is a crash.
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

// doctestReport is the parsed XML, in document order.
type doctestReport struct {
	tests    *Tests
	cases    []doctestCase
	subcases []doctestSubcase
	open     []doctestElement // open elements
	failed   int              // failed expressions so far
}

type doctestCase struct {
	name     string
	from, to int // range of its subcases, at any depth
}

type doctestSubcase struct {
	name   string
	failed bool
}

// doctestElement is an open element.
type doctestElement struct {
	index  int // in cases or subcases
	kind   string
	failed int // number of failed expressions at its start
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
	// The root is not a test case, whatever its name.
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
			open.failed++ // it fails its ancestors, not itself
		}
	}
	d.open = append(d.open, open)
}

// attribute returns an attribute, or "None" as Python prints a missing one.
func attribute(el xml.StartElement, name string) string {
	for _, a := range el.Attr {
		if a.Name == (xml.Name{Local: name}) {
			return a.Value
		}
	}
	return "None"
}

// xmlSpaces normalizes the white space in attribute values, as XML requires.
// Elsewhere white space does not matter.
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
