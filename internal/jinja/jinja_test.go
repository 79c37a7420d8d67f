package jinja_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/internal/jinja"
)

// goldenCase is one text that Jinja2 rendered; scripts/jinja-goldens.py writes them.
type goldenCase struct {
	Template string         `json:"template"` // a key of the configuration
	TextOf   string         `json:"text_of"`  // or the template itself
	Vars     map[string]any `json:"vars"`
	Text     string         `json:"text"`
	SHA256   string         `json:"sha256"` // of a long text
	Error    string         `json:"error"`  // Jinja2's exception
}

// TestConformance compares with what Jinja2 renders, byte for byte.
func TestConformance(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < 8 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		base := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(base, func(t *testing.T) {
			var cases []goldenCase
			decode(t, json.Unmarshal, file, &cases)
			config := map[string]map[string]any{}
			if base != "constructs" {
				decode(t, yaml.Unmarshal, filepath.Join("../../configs/testdata/peer", base+".yaml"), &config)
			}
			if len(cases) < 30 {
				t.Errorf("%d cases, want at least 30", len(cases))
			}
			vars := cases[0].Vars
			for _, c := range cases {
				if c.Vars != nil {
					vars = c.Vars
				}
				text := c.TextOf
				if section, key, ok := strings.Cut(c.Template, "."); ok {
					text, _ = config[section][key].(string)
				}
				expanded, _ := expand(vars).(map[string]any)
				checkCase(t, text, expanded, c)
			}
		})
	}
}

func decode(t *testing.T, unmarshal func([]byte, any) error, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = unmarshal(data, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// expand repeats the texts of values like [TEXT, N], and makes whole numbers of others.
func expand(v any) any {
	switch v := v.(type) {
	case []any:
		if len(v) == 2 {
			text, isText := v[0].(string)
			n, isNumber := v[1].(float64)
			if isText && isNumber {
				return strings.Repeat(text, int(n))
			}
		}
		list := make([]any, len(v))
		for i := range v {
			list[i] = expand(v[i])
		}
		return list
	case map[string]any:
		m := map[string]any{}
		for key, value := range v {
			m[key] = expand(value)
		}
		return m
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	}
	return v
}

func checkCase(t *testing.T, text string, vars map[string]any, c goldenCase) {
	t.Helper()
	got, err := render(text, vars)
	hash := sha256.Sum256([]byte(got))
	switch {
	case c.Error != "":
		var e *jinja.Error
		if !errors.As(err, &e) || e.Line != 1 {
			t.Errorf("%.200q: %v, want an error like %s", text, err, c.Error)
		}
	case err != nil:
		t.Errorf("%.200q: %v, want %.200q", text, err, c.Text)
	case c.SHA256 != "" && hex.EncodeToString(hash[:]) != c.SHA256:
		t.Errorf("%.200q with %v: another text than Jinja2's: %.300q", text, c.Vars, got)
	case c.SHA256 == "" && got != c.Text:
		t.Errorf("%.200q with %v:\n got %q\nwant %q", text, c.Vars, got, c.Text)
	}
}

func render(text string, vars map[string]any) (string, error) {
	tmpl, err := jinja.Parse(text)
	if err != nil {
		return "", err
	}
	return tmpl.Render(vars)
}

// TestBounds renders templates that would not end, or fill the memory.
func TestBounds(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for _, text := range []string{
		"{% for a in s %}{% for b in s %}{% for c in s %}{% endfor %}{% endfor %}{% endfor %}",
		"{% for a in s %}{% for b in s %}{{ s }}{% endfor %}{% endfor %}",
		"{{ s * 1000000 }}", "{{ s.replace('x', s).replace('x', s) }}", "{{ 9999999 ** 9 }}",
		"{% set v = s %}" + strings.Repeat("{% set v = v ~ v %}", 40),
		strings.Repeat("{% if s %}", 200) + strings.Repeat("{% endif %}", 200),
		"{{ " + strings.Repeat("(", 5000), "{{ " + strings.Repeat("not ", 5000) + "s }}", "{{ " + strings.Repeat("-", 5000) + "1 }}",
	} {
		var e *jinja.Error
		if got, err := render(text, map[string]any{"s": long}); !errors.As(err, &e) {
			t.Errorf("%.80q: %d bytes, %v", text, len(got), err)
		}
	}
}

// TestText checks outputs of which the middle is not known.
func TestText(t *testing.T) {
	vars := map[string]any{"o": jinja.Text{Head: strings.Repeat("é", 6000), Tail: strings.Repeat("z", 6000), Chars: 5_000_000}}
	for text, want := range map[string]string{
		"{{ o | length - 10000 }}": "4990000",
		"{{ o[:5000] }}":           strings.Repeat("é", 5000),
		"{{ o[-5000:] }}":          strings.Repeat("z", 5000),
		"{{ o[1:3] }}{{ o[-1:] }}": "ééz",
		"{{ o }}":                  strings.Repeat("é", 6000) + "\n[... 4988000 characters left out ...]\n" + strings.Repeat("z", 6000),
		"{{ o is string }}{{ 'z' in o }}{{ o[:2] | tojson }}": `TrueTrue"\u00e9\u00e9"`,
	} {
		if got, err := render(text, vars); err != nil || got != want {
			t.Errorf("%s: %.100q, %v; want %.100q", text, got, err, want)
		}
	}
}

func TestErrorLines(t *testing.T) {
	for text, want := range map[string]string{
		"a\n{{ x }}":                         "line 2: x is undefined",
		"a\n\n{% if o.x\n %}{% endif %}":     "line 3: o.x is undefined",
		"{% include 'x' %}":                  "line 1: the statement \"include\" is not supported; if, for, set and raw are",
		"{# \n #}{%- if o -%}\n{% endfor %}": "line 3: unexpected endfor; if is open",
		"\n{{ o | foo }}":                    "line 2: the filter \"foo\" is not supported",
		"{% if o %}\n\n":                     "line 1: if has no endif",
		"{{ (1 }}":                           "line 1: unexpected the end of the tag",
	} {
		if _, err := render(text, map[string]any{"o": map[string]any{}}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestNames(t *testing.T) {
	tmpl, err := jinja.Parse("{{ a.x[b] }}\n{% set c = d | int %}{{ c }}{% for e, f in g if h %}{{ e ~ f ~ loop.index }}{% endfor %}{% if i is defined and i == j %}{{ k | default(l) }}{% endif %}")
	if err != nil {
		t.Fatal(err)
	}
	names := tmpl.Names()
	for _, want := range []string{"a", "b", "d", "g", "h", "j", "l"} {
		if names[want] == 0 {
			t.Errorf("%s is missing", want)
		}
	}
	if len(names) != 7 || names["d"] != 2 {
		t.Error(names)
	}
}

func FuzzRender(f *testing.F) {
	data, err := os.ReadFile("testdata/constructs.txt")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		f.Add(line)
	}
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = render(text, map[string]any{"n": 3, "s": "text", "lst": []string{"a"}, "d": map[string]any{"a": 1}}) // must not panic
	})
}
