package web_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/minibench/mini/cmd/mini/internal/web"
	"github.com/minibench/mini/cmd/mini/internal/web/webtest"
	"github.com/minibench/mini/model/transport"
)

// writeFile returns the file of runs.
func writeFile(t *testing.T, dirs []string, o web.Options, f web.FileOptions) (string, web.Held) {
	t.Helper()
	v, err := web.Open(dirs, o)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	held, err := v.WriteFile(t.Context(), &b, f)
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), held
}

// bigRuns returns two runs that differ at the instances 1, 4 and 5.
func bigRuns(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	dirs := []string{filepath.Join(dir, "one"), filepath.Join(dir, "two")}
	webtest.BigRun(t, dirs[0], 6, 1, 3)
	webtest.BigRun(t, dirs[1], 6, 2, 3)
	return dirs
}

func parse(t *testing.T, page string) *html.Node {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// content returns the text in an element.
func content(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// unpack returns the fragments of the attempts by the ids of their pages, and these ids in order.
func unpack(t *testing.T, doc *html.Node) (fragments map[string]string, order []string) {
	t.Helper()
	fragments = map[string]string{}
	for n := range doc.Descendants() {
		if n.Data != "script" || attribute(n, "type") != "text/plain" {
			continue
		}
		r, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(content(n))))
		if err != nil {
			t.Fatal(err)
		}
		fragment, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		id := attribute(n.Parent, "id")
		fragments[id] = string(fragment)
		order = append(order, id)
	}
	return fragments, order
}

// checkFragment reports attributes that run or load something, and ids that occur twice. It adds
// the elements to count.
func checkFragment(t *testing.T, doc *html.Node, count map[string]int) (ids map[string]bool) {
	t.Helper()
	ids = map[string]bool{}
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		count[n.Data]++
		for _, a := range n.Attr {
			switch {
			case a.Key == "style" || strings.HasPrefix(a.Key, "on"):
				t.Errorf("<%s> has the attribute %s", n.Data, a.Key)
			case slices.Contains([]string{"src", "srcset", "action", "formaction", "data", "poster", "background"}, a.Key):
				t.Errorf("<%s> loads %.60q", n.Data, a.Val)
			case a.Key == "href" && !strings.HasPrefix(a.Val, "#"):
				t.Errorf("<%s> leads to %.60q", n.Data, a.Val)
			case a.Key == "id" && ids[a.Val]:
				t.Errorf("the id %q occurs twice", a.Val)
			case a.Key == "id":
				ids[a.Val] = true
			}
		}
	}
	return ids
}

// TestWriteFile checks that a file runs and loads nothing but its own script and style sheet, and
// that its links lead to its pages.
func TestWriteFile(t *testing.T) {
	dirs := bigRuns(t)
	page, held := writeFile(t, dirs, web.Options{}, web.FileOptions{})
	if held.Runs != 2 || held.Attempts != 18 || held.Of != 18 {
		t.Errorf("held %+v, want 18 attempts of 2 runs", held)
	}
	if again, _ := writeFile(t, dirs, web.Options{}, web.FileOptions{}); again != page {
		t.Error("a second file differs")
	}
	doc := parse(t, page)
	count := map[string]int{}
	ids := checkFragment(t, doc, count)
	fragments, order := unpack(t, doc)
	for _, name := range []string{"link", "img", "iframe", "object", "embed", "base", "audio", "video"} {
		if count[name] > 0 {
			t.Errorf("%d elements <%s>", count[name], name)
		}
	}
	if want := len(order) + 2; count["style"] != 1 || count["script"] != want { // the table and the script
		t.Errorf("%d style sheets and %d scripts, want 1 and %d", count["style"], count["script"], want)
	}
	checkPolicy(t, doc)

	documents := []*html.Node{doc}
	for id, fragment := range fragments {
		n := parse(t, fragment)
		for own := range checkFragment(t, n, map[string]int{}) {
			if ids[own] {
				t.Errorf("the steps of %s have the id %q, which another page has", id, own)
			}
		}
		if !strings.Contains(fragment, `id="s3"`) {
			t.Errorf("%s: there is no step 3", id)
		}
		documents = append(documents, n)
	}
	step := regexp.MustCompile(`/s(end|\d+)$`)
	for _, d := range documents {
		for n := range d.Descendants() {
			if target, ok := strings.CutPrefix(attribute(n, "href"), "#"); ok && !ids[target] && !ids[step.ReplaceAllString(target, "")] {
				t.Errorf("a link leads to #%s, which no page has", target)
			}
		}
	}
}

// checkPolicy checks that the policy is the first element of the head, and that it allows the
// script and the style sheet by their hashes.
func checkPolicy(t *testing.T, doc *html.Node) {
	t.Helper()
	hash := func(n *html.Node) string {
		sum := sha256.Sum256([]byte(content(n)))
		return "-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "';"
	}
	policy := ""
	for n := range doc.Descendants() {
		switch {
		case n.Type == html.ElementNode && n.Data == "head":
			for first := range n.ChildNodes() {
				if first.Type == html.ElementNode {
					policy = attribute(first, "content")
					break
				}
			}
		case n.Data == "style" && !strings.Contains(policy, " style"+hash(n)):
			t.Errorf("the policy %q does not allow the style sheet with %s", policy, hash(n))
		case n.Data == "script" && attribute(n, "type") == "" && !strings.Contains(policy, " script"+hash(n)):
			t.Errorf("the policy %q does not allow the script with %s", policy, hash(n))
		}
	}
	for _, part := range []string{
		"default-src 'none';", "form-action 'none';", "base-uri 'none';", "require-trusted-types-for 'script';", "trusted-types mini",
	} {
		if !strings.Contains(policy, part) {
			t.Errorf("the policy %q lacks %s", policy, part)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "connect-src") {
		t.Errorf("the policy %q allows too much", policy)
	}
}

// TestFileSteps checks which attempts a file holds with their steps, and that it lists the others.
func TestFileSteps(t *testing.T) {
	dirs := bigRuns(t)
	all, _ := writeFile(t, dirs, web.Options{}, web.FileOptions{Steps: web.AllSteps})
	fragments, order := unpack(t, parse(t, all))
	if len(fragments) != 18 {
		t.Fatalf("%d attempts, want 18", len(fragments))
	}
	// The run one has one attempt at an instance, and the run two has two.
	attempts := func(instances ...int) (ids []string) {
		for _, i := range instances {
			for _, a := range []string{"one/i/%s/a/1", "two/i/%s/a/1", "two/i/%s/a/2"} {
				ids = append(ids, "r/"+fmt.Sprintf(a, webtest.BigID(i)))
			}
		}
		return ids
	}
	flips, errors, resolved := attempts(1, 4, 5), attempts(2), attempts(0, 3)
	if diff := cmp.Diff(slices.Concat(flips, errors, resolved), order); diff != "" {
		t.Errorf("order of the attempts (-want +got):\n%s", diff)
	}
	size := len(regexp.MustCompile(`(?s)<script type="text/plain" id="b\d+">(.*?)</script>`).FindStringSubmatch(all)[1])

	tests := []struct {
		name  string
		steps web.StepChoice
		limit int
		want  []string
	}{
		{"none", web.NoSteps, 0, nil},
		{"flips", web.FlipSteps, 1, flips},
		{"failed", web.FailedSteps, 1, slices.Concat(attempts(1)[2:], attempts(4)[2:], attempts(5)[:2], errors)},
		{"large limit", web.FitSteps, 0, order},
		{"limit", web.FitSteps, 4*size + size/2, order[:4]},
		{"small limit", web.FitSteps, 1, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			page, held := writeFile(t, dirs, web.Options{}, web.FileOptions{Steps: tt.steps, Limit: tt.limit})
			_, got := unpack(t, parse(t, page))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("attempts with steps (-want +got):\n%s", diff)
			}
			if held.Attempts != len(tt.want) {
				t.Errorf("held %d attempts, want %d", held.Attempts, len(tt.want))
			}
			if n := strings.Count(page[strings.Index(page, `id="holds"`):], "<code>mini view "); n != 18-len(tt.want) {
				t.Errorf("%d attempts are listed as left out, want %d", n, 18-len(tt.want))
			}
		})
	}
	t.Run("none has no commands", func(t *testing.T) {
		page, _ := writeFile(t, dirs, web.Options{}, web.FileOptions{Steps: web.NoSteps})
		if strings.Contains(page, `class="line"`) {
			t.Error("the file has lines of commands")
		}
	})
}

// TestHostileFile checks that hostile texts add no elements to a file.
func TestHostileFile(t *testing.T) {
	counts := map[string]map[string]int{}
	for name, write := range map[string]func(testing.TB, string){"hostile": webtest.HostileRun, "harmless": webtest.HarmlessRun} {
		dir := filepath.Join(t.TempDir(), "run")
		write(t, dir)
		page, held := writeFile(t, []string{dir}, web.Options{}, web.FileOptions{Steps: web.AllSteps})
		if held.Attempts < 50 {
			t.Fatalf("the file has the steps of %d attempts", held.Attempts)
		}
		doc := parse(t, page)
		count := map[string]int{}
		checkFragment(t, doc, count)
		fragments, _ := unpack(t, doc)
		for _, fragment := range fragments {
			checkFragment(t, parse(t, fragment), count)
		}
		// Other elements depend on the texts: long ones are folded, and lines are found in commands.
		active := map[string]int{}
		for _, name := range []string{
			"script", "style", "link", "meta", "base", "iframe", "object", "embed", "img", "svg", "form", "input", "button", "title",
		} {
			active[name] = count[name]
		}
		counts[name] = active
	}
	if diff := cmp.Diff(counts["harmless"], counts["hostile"]); diff != "" {
		t.Errorf("elements of the harmless (-) and the hostile (+) file:\n%s", diff)
	}
}

// TestFileSecrets checks that keys are removed, also where a page writes them with references.
func TestFileSecrets(t *testing.T) {
	const key = `argument):  # a line of <source>` // in every output
	dir := filepath.Join(t.TempDir(), "run")
	webtest.BigRun(t, dir, 1, 1, 3)
	find := func(o web.Options) (places []string) {
		page, _ := writeFile(t, []string{dir}, o, web.FileOptions{})
		doc := parse(t, page)
		fragments, _ := unpack(t, doc)
		fragments["page"] = page
		for _, place := range slices.Sorted(maps.Keys(fragments)) {
			if strings.Contains(content(parse(t, fragments[place])), key) {
				places = append(places, place)
			}
		}
		return places
	}
	if got := find(web.Options{}); !slices.Equal(got, []string{"r/run/i/owner0__project-1000/a/1"}) {
		t.Fatalf("without Redact, the key is in %q", got)
	}
	if got := find(web.Options{Redact: transport.NewRedactor(key).Bytes}); len(got) > 0 {
		t.Errorf("the key is in %q", got)
	}
}
