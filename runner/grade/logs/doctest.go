package logs

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// doctest reads the XML of the C++ framework of that name: the subcases of each
// test case, which pass when every expression in them does. Anything but
// well-formed XML is a crash.
func doctest(t *Tests, text string, _ Subject) error {
	const end = "</doctest>"
	start := strings.Index(text, "<doctest")
	if start < 0 {
		return nil
	}
	text = xmlSpaces.Replace(text[start:])
	n := strings.Index(text, end)
	if n < 0 {
		return errors.New("the XML of doctest has no end")
	}
	d := doctestReport{tests: t, spaces: map[string]int{xmlSpace: 1}}
	if err := d.read(text[:n+len(end)]); err != nil {
		return fmt.Errorf("read the XML of doctest: %w", err)
	}
	return d.record()
}

// doctestReport is what the XML says, in its order.
type doctestReport struct {
	tests    *Tests
	cases    []doctestCase
	subcases []doctestSubcase
	above    []doctestElement // those that are open
	failed   int              // failed expressions so far
	spaces   map[string]int   // namespaces that open elements declare
}

type doctestCase struct {
	name     string
	from, to int // of its subcases, at any depth
}

type doctestSubcase struct {
	name   string
	failed bool
}

// doctestElement is an open element.
type doctestElement struct {
	index  int // in cases or subcases
	kind   string
	failed int // failed expressions when it began
	spaces []string
}

func (d *doctestReport) read(text string) error {
	dec := xml.NewDecoder(strings.NewReader(text))
	for {
		from := dec.InputOffset()
		tok, err := dec.Token()
		if err == io.EOF { //nolint:errorlint // Token returns it bare
			return nil
		}
		if err != nil {
			return err
		}
		switch el := tok.(type) {
		case xml.StartElement:
			if !apart(text[from:dec.InputOffset()]) {
				return errors.New("no space is between two attributes")
			}
			if err := d.start(el); err != nil {
				return err
			}
		case xml.EndElement:
			d.end()
		case xml.Directive:
			return errors.New("a declaration is within an element")
		case xml.ProcInst:
			if strings.EqualFold(el.Target, "xml") {
				return errors.New("an XML declaration is not at the start")
			}
		}
	}
}

func (d *doctestReport) start(el xml.StartElement) error {
	attrs := map[xml.Name]string{}
	open := doctestElement{failed: d.failed}
	for _, a := range el.Attr {
		if _, twice := attrs[a.Name]; twice {
			return fmt.Errorf("an attribute %.100q is there twice", a.Name.Local)
		}
		attrs[a.Name] = a.Value
		if a.Name.Space == xmlnsPrefix || a.Name == (xml.Name{Local: xmlnsPrefix}) {
			if err := checkDeclared(a); err != nil {
				return err
			}
			d.spaces[a.Value]++
			open.spaces = append(open.spaces, a.Value)
		}
	}
	if err := d.checkSpaces(el); err != nil {
		return err
	}
	// The root is no test case, whatever its name.
	if el.Name.Space == "" && len(d.above) > 0 {
		switch el.Name.Local {
		case "TestCase":
			open.kind, open.index = el.Name.Local, len(d.cases)
			d.cases = append(d.cases, doctestCase{name: nameOf(attrs), from: len(d.subcases)})
		case "SubCase":
			open.kind, open.index = el.Name.Local, len(d.subcases)
			d.subcases = append(d.subcases, doctestSubcase{name: nameOf(attrs)})
		case "Expression":
			if attrs[xml.Name{Local: "success"}] != "true" {
				d.failed++
				open.failed++ // it fails those above it, not itself
			}
		}
	}
	d.above = append(d.above, open)
	return nil
}

// xmlSpace is the namespace of the prefix xml, which nobody declares, and
// xmlnsSpace that of the prefix that declares.
const (
	xmlPrefix   = "xml"
	xmlSpace    = "http://www.w3.org/XML/1998/namespace"
	xmlnsPrefix = "xmlns"
	xmlnsSpace  = "http://www.w3.org/2000/xmlns/"
)

// checkDeclared finds declarations of namespaces that may not be.
func checkDeclared(a xml.Attr) error {
	prefix := ""
	if a.Name.Space != "" {
		prefix = a.Name.Local
	}
	switch {
	case prefix == xmlnsPrefix, prefix == xmlPrefix != (a.Value == xmlSpace), a.Value == xmlnsSpace:
		return errors.New("a prefix is declared that is not for that")
	case prefix != "" && a.Value == "":
		return fmt.Errorf("the prefix %.100q is declared to be none", prefix)
	}
	return nil
}

// checkSpaces finds prefixes that nothing declares, and names that are no
// prefix and name: the decoder gives both as they are.
func (d *doctestReport) checkSpaces(el xml.StartElement) error {
	names := []xml.Name{el.Name}
	for _, a := range el.Attr {
		if a.Name.Space != xmlnsPrefix {
			names = append(names, a.Name)
		}
	}
	for _, n := range names {
		if n.Space != "" && d.spaces[n.Space] == 0 {
			return fmt.Errorf("the prefix %.100q is not declared", n.Space)
		}
		if strings.Contains(n.Local, ":") {
			return fmt.Errorf("%.100q is no name", n.Local)
		}
	}
	return nil
}

// apart says that a space is before every attribute of a tag, which the decoder
// does not ask for.
func apart(tag string) bool {
	for {
		i := strings.IndexAny(tag, `"'`)
		if i < 0 {
			return true
		}
		_, after, ok := strings.Cut(tag[i+1:], tag[i:i+1])
		if !ok {
			return true
		}
		if after != "" && strings.IndexByte(" />", after[0]) < 0 {
			return false
		}
		tag = after
	}
}

// xmlSpaces is what XML makes of the ends of lines in a value, but for those
// that are written as numbers. Elsewhere they mean the same as a space.
var xmlSpaces = strings.NewReplacer("\t", " ", "\n", " ", "\r", " ")

// nameOf is the name of a test, or Python's word for none.
func nameOf(attrs map[xml.Name]string) string {
	name, ok := attrs[xml.Name{Local: "name"}]
	if !ok {
		return "None"
	}
	return name
}

func (d *doctestReport) end() {
	open := d.above[len(d.above)-1]
	d.above = d.above[:len(d.above)-1]
	for _, s := range open.spaces {
		d.spaces[s]--
	}
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
