package price_test

import (
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model/price"
)

func TestEmbedded(t *testing.T) {
	table, err := price.Embedded()
	require.NoError(t, err)
	if _, err := time.Parse(time.DateOnly, table.Date); err != nil || !strings.HasPrefix(table.Source, "https://") {
		t.Errorf("the table is of %q, from %q: %v", table.Date, table.Source, err)
	}
	for name, p := range table.Providers {
		for id, m := range p.Models {
			// These conditions hold for every provider, so they find mistakes in the table.
			if m.Output < m.Input || m.Cached > m.Input || m.CacheWrite != 0 && m.CacheWrite < m.Input ||
				m.CacheWriteHour != 0 && m.CacheWriteHour < m.CacheWrite || m.Input > 200 || m.ContextWindow < 8000 {
				t.Errorf("%s of %s is unlikely: %+v", id, name, m)
			}
			if l := m.Long; l != nil && (l.Input < m.Input || l.Output < m.Output || l.Threshold < 100_000) {
				t.Errorf("%s of %s has an unlikely price for long prompts: %+v", id, name, *l)
			}
		}
	}
}

func TestFind(t *testing.T) {
	own, err := price.Parse([]byte(`
providers:
  mine:
    hosts: ["LocalHost:8000"]
    models:
      qwen: {free: true, window: 32768}
  any:
    hosts: ["*"]
    models:
      gpt-5-mini: {input: 1, output: 1}
      qwen: {input: 7, output: 7}
  maker:
    hosts: [api.openai.com]
    models:
      special: {input: 9, output: 9}
`))
	require.NoError(t, err)
	embedded, err := price.Embedded()
	require.NoError(t, err)
	find := func(tables []price.Table, base, id string) (price.Model, bool) {
		for _, t := range tables {
			if m, ok := t.Find(base, id); ok {
				return m, true
			}
		}
		return price.Model{}, false
	}
	tests := map[string]struct {
		tables    []price.Table
		base, id  string
		wantInput float64
		wantFound bool
	}{
		"its provider":            {[]price.Table{embedded}, "https://api.openai.com/v1", "gpt-5-mini", 0.25, true},
		"in capitals":             {[]price.Table{embedded}, "https://API.OpenAI.com/v1", "gpt-5-mini", 0.25, true},
		"elsewhere":               {[]price.Table{embedded}, "http://localhost:8000/v1", "gpt-5-mini", 0, false},
		"a host that ends alike":  {[]price.Table{embedded}, "https://api.openai.com.example.net/v1", "gpt-5-mini", 0, false},
		"a name nobody knows":     {[]price.Table{embedded}, "https://api.openai.com/v1", "gpt-5-mini-tuned", 0, false},
		"the user's own first":    {[]price.Table{own, embedded}, "https://api.openai.com/v1", "gpt-5-mini", 1, true},
		"embedded if not in own":  {[]price.Table{own, embedded}, "https://api.openai.com/v1", "gpt-5", 1.25, true},
		"a named host before any": {[]price.Table{own, embedded}, "http://localhost:8000/v1", "qwen", 0, true},
		"any host":                {[]price.Table{own, embedded}, "http://localhost:9000/v1", "qwen", 7, true},
		"no URL":                  {[]price.Table{own, embedded}, "://", "qwen", 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m, ok := find(test.tables, test.base, test.id)
			if ok != test.wantFound || m.Input != test.wantInput {
				t.Errorf("found %v at %v, want %v at %v", ok, m.Input, test.wantFound, test.wantInput)
			}
		})
	}
}

func TestNamed(t *testing.T) {
	embedded, err := price.Embedded()
	require.NoError(t, err)
	if m, ok := embedded.FindByName("claude-sonnet-4-5"); !ok || m.Output != 15 {
		t.Errorf("%v, %+v", ok, m)
	}
	if _, ok := embedded.FindByName("nobody's"); ok {
		t.Error("an unknown model was found")
	}
}

func TestParseErrors(t *testing.T) {
	const head = "providers:\n  p:\n    hosts: [h]\n    models:\n"
	tests := map[string]struct{ text, want string }{
		"an unknown key":  {head + "      m: {input: 1, output: 1, outputs: 2}", "line 5: unknown key outputs; a model has input, output,"},
		"words for one":   {head + "      m: {input: much, output: 1}", "line 5: want a number, have much"},
		"one host":        {"providers:\n  p: {hosts: h, models: {m: {input: 1, output: 1}}}", "line 2: want a list, have h"},
		"no output":       {head + "      m: {input: 1}", "m of p: output costs nothing; add free: true if that is intended"},
		"no input":        {head + "      m: {output: 1}", "m of p: input costs nothing"},
		"a URL":           {"providers:\n  p: {hosts: [\"https://h/v1\"], models: {m: {input: 1, output: 1}}}", `"https://h/v1" of p is not a host; omit http:// and the path`},
		"two documents":   {head + "      m: {input: 1, output: 1}\n---\nproviders: {}", "more than one document"},
		"an empty file":   {"", "no providers"},
		"no hosts":        {"providers:\n  p:\n    models:\n      m: {input: 1}", "p has no hosts"},
		"a minus":         {head + "      m: {input: 1, output: -1}", "invalid price -1"},
		"not a number":    {head + "      m: {input: 1, output: .nan}", "invalid price NaN"},
		"nothing":         {head + "      m: {window: 1000}", "free: true"},
		"long from when":  {head + "      m: {input: 1, output: 1, long: {input: 2, output: 2}}", "set tokens to a positive number"},
		"a window of -1":  {head + "      m: {input: 1, output: 1, window: -1}", "invalid window -1"},
		"no YAML":         {"{", "read prices"},
		"in two of them":  {"providers:\n  a: {hosts: [h], models: {m: {input: 1, output: 1}}}\n  b: {hosts: [H], models: {m: {input: 2, output: 2}}}", "m at h is in a and in b"},
		"another's form":  {`{"gpt-5": {"input_cost_per_token": 1e-6}}`, "line 1: unknown key gpt-5; a table has date, source and providers"},
		"a date too long": {"date: [1]", "line 1: want a string, have a list"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := price.Parse([]byte(test.text)); err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}
