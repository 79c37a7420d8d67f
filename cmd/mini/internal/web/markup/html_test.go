package markup_test

import (
	"fmt"
	"html/template"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/minibench/mini/cmd/mini/internal/web/markup"
)

// checkText checks that a block shows the input: letters as they are, signs by the codes in their
// titles, and cuts by their counts.
func checkText(t *testing.T, b markup.Block, input string) {
	t.Helper()
	rest, omitted := input, 0
	fail := func(piece string) { t.Fatalf("the block has %.100q where the input has %.100q", piece, rest) }
	var walk func(nodes []*html.Node)
	walk = func(nodes []*html.Node) {
		for _, n := range nodes {
			if n.Type == html.TextNode {
				for _, r := range n.Data {
					if r == '\n' {
						rest = strings.TrimPrefix(rest, "\r")
					}
					got, size := utf8.DecodeRuneInString(rest)
					isSign := r >= 0x2400 && r <= 0x2424 || r == utf8.RuneError // beyond the spans of a block
					if got != r && !isSign {
						fail(n.Data)
					}
					rest = rest[size:]
				}
				continue
			}
			switch class := attr(n, "class"); class {
			case "ctl":
				var more int
				if _, count, found := strings.Cut(n.FirstChild.Data, "("); found {
					_, _ = fmt.Sscanf(count, "%d more)", &more)
				}
				for code := range strings.FieldsSeq(attr(n, "title")) {
					if value, isByte := strings.CutPrefix(code, "0x"); isByte {
						c, _ := strconv.ParseUint(value, 16, 8)
						if rest == "" || rest[0] != byte(c) {
							fail(code)
						}
						rest = rest[1:]
						continue
					}
					c, _ := strconv.ParseUint(strings.TrimPrefix(code, "U+"), 16, 32)
					if !strings.HasPrefix(rest, string(rune(c))) {
						fail(code)
					}
					rest = strings.TrimPrefix(rest, string(rune(c)))
				}
				for range more {
					_, size := utf8.DecodeRuneInString(rest)
					rest = rest[size:]
				}
			case "cut", "gap":
				var count int
				if _, err := fmt.Sscanf(strings.TrimSpace(n.FirstChild.Data), "(%d more bytes)", &count); err != nil || count > len(rest) {
					fail(n.FirstChild.Data)
				}
				rest, omitted = rest[count:], omitted+count
			default:
				walk(children(n))
			}
		}
	}
	nodes := parse(t, b.HTML())
	if strings.Contains(string(b.HTML()), " more)") && strings.Count(string(b.HTML()), "<span") >= 4000 {
		return // the count of a run has no title
	}
	walk(nodes)
	if rest != "" && rest != "\r" || omitted != b.Omitted() {
		t.Errorf("the block lacks %.100q, and omits %d bytes, not %d", rest, omitted, b.Omitted())
	}
}

var classes = regexp.MustCompile(`^[a-z0-9 -]+$`)

// parse parses a fragment as a browser does. It fails the test if there are other tags and
// attributes than those of this package, or characters that cannot be seen.
func parse(t *testing.T, h template.HTML) []*html.Node {
	t.Helper()
	if strings.ContainsAny(string(h), "\x00\r") {
		t.Fatalf("control characters in %.200q", h)
	}
	nodes, err := html.ParseFragment(strings.NewReader(string(h)), &html.Node{Type: html.ElementNode, Data: "div", DataAtom: atom.Div})
	if err != nil {
		t.Fatal(err)
	}
	var check func(nodes []*html.Node)
	check = func(nodes []*html.Node) {
		for _, n := range nodes {
			switch {
			case n.Type == html.TextNode:
				for _, r := range n.Data {
					if !unicode.IsPrint(r) && !unicode.Is(unicode.Zs, r) && !strings.ContainsRune("\n\t\u200c\u200d", r) {
						t.Fatalf("%U is shown as it is in %.200q", r, n.Data)
					}
				}
			case n.Type != html.ElementNode:
				t.Fatalf("a node of type %d: %q", n.Type, n.Data)
			case n.Data == "span":
				for _, a := range n.Attr {
					if a.Key != "class" && a.Key != "title" || a.Key == "class" && !classes.MatchString(a.Val) ||
						a.Key == "title" && strings.Trim(a.Val, "U+0123456789ABCDEFx ") != "" {
						t.Fatalf("attribute %q", a)
					}
				}
				check(children(n))
			case n.Data == "mark" || n.Data == "code" || n.Data == "pre":
				if len(n.Attr) > 0 {
					t.Fatalf("attributes %q", n.Attr)
				}
				check(children(n))
			default:
				t.Fatalf("element %q", n.Data)
			}
		}
	}
	check(nodes)
	return nodes
}

func textOf(t *testing.T, h template.HTML) string {
	t.Helper()
	var b strings.Builder
	var walk func(nodes []*html.Node)
	walk = func(nodes []*html.Node) {
		for _, n := range nodes {
			if n.Type == html.TextNode {
				b.WriteString(n.Data)
			}
			walk(children(n))
		}
	}
	walk(parse(t, h))
	return b.String()
}

func children(n *html.Node) (all []*html.Node) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		all = append(all, c)
	}
	return all
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}
