// Package price knows what models cost where their makers serve them, how long
// a prompt they take, and whether it may hold images.
//
// The table is embedded, dated, and says where it comes from; a user's file of
// the same form is laid over it. Names mean something only at the hosts a table
// gives them: the same name elsewhere may be another model, or another bill.
//
//	table, err := price.Shipped()
//	m, ok := table.Find("https://api.openai.com/v1", "gpt-5-mini")
package price

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/model"
)

// Table says what models cost.
type Table struct {
	// Date is the day, as YYYY-MM-DD, on which the prices were so, by Source.
	Date      string              `yaml:"date"`
	Source    string              `yaml:"source"`
	Providers map[string]Provider `yaml:"providers"`
}

// Provider is who serves models.
type Provider struct {
	// Hosts are where its models are, as "api.openai.com" or with a port, as
	// "localhost:8000"; "*" is any host.
	Hosts  []string         `yaml:"hosts"`
	Models map[string]Model `yaml:"models"` // by the name in requests
}

// Model is what is known of a model.
type Model struct {
	model.Price `yaml:",inline"`
	// Window is the length of the longest prompt, in tokens; 0 is not known.
	Window int64 `yaml:"window"`
	// Images says whether a prompt may hold images.
	Images bool `yaml:"images"`
}

//go:embed table.yaml
var shipped []byte

// Shipped is the embedded table.
func Shipped() (Table, error) { return Parse(shipped) }

// Parse reads a table. An error names the entry that is wrong.
func Parse(data []byte) (Table, error) {
	var t Table
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&t); err != nil && !errors.Is(err, io.EOF) {
		return Table{}, fmt.Errorf("read prices: %w", plain(err))
	}
	if err := d.Decode(&struct{}{}); !errors.Is(err, io.EOF) {
		return Table{}, errors.New("read prices: more than one document; leave out what follows the line ---")
	}
	if len(t.Providers) == 0 {
		return Table{}, errors.New("read prices: no providers; each has hosts, and models with their prices")
	}
	owners := map[[2]string]string{} // of a model at a host
	for name, p := range t.Providers {
		if len(p.Hosts) == 0 {
			return Table{}, fmt.Errorf("read prices: provider %s has no hosts; name them, or write \"*\" for any", name)
		}
		for i, host := range p.Hosts {
			if strings.ContainsAny(host, "/ ") {
				return Table{}, fmt.Errorf("read prices: %q of %s is no host; write it without http:// and path, as api.openai.com or localhost:8000", host, name)
			}
			p.Hosts[i] = strings.ToLower(host)
		}
		for id, m := range p.Models {
			if err := m.check(); err != nil {
				return Table{}, fmt.Errorf("read prices: %s of %s: %w", id, name, err)
			}
			for _, host := range p.Hosts {
				if other := owners[[2]string{host, id}]; other != "" {
					return Table{}, fmt.Errorf("read prices: %s at %s is in %s and in %s; leave one", id, host, min(name, other), max(name, other))
				}
				owners[[2]string{host, id}] = name
			}
		}
	}
	return t, nil
}

// What the YAML library says of a table, in the words of its types.
var (
	unknownKey = lazyregexp.New(`^(line \d+): field (.*) not found in type (.*)$`)
	notOfType  = lazyregexp.New("^(line \\d+): cannot unmarshal !!(\\w+)(?: `(.*)`)? into (.*)$")
)

// plain is the first of the errors of a YAML file, in one line.
func plain(err error) error {
	wrong, ok := errors.AsType[*yaml.TypeError](err)
	if !ok || len(wrong.Errors) == 0 {
		return err
	}
	first := strings.ReplaceAll(wrong.Errors[0], "\n", " ")
	if m := unknownKey.FindStringSubmatch(first); m != nil {
		keys := "a model has input, output, cached, cache_write, cache_write_hour, long, window, images and free"
		switch m[3] {
		case "price.Table":
			keys = "a table has date, source and providers"
		case "price.Provider":
			keys = "a provider has hosts and models"
		}
		return fmt.Errorf("%s: unknown key %s; %s", m[1], m[2], keys)
	}
	if m := notOfType.FindStringSubmatch(first); m != nil {
		want, have := "a text", cmp.Or(m[3], map[string]string{"seq": "a list", "map": "keys with values"}[m[2]], "this")
		switch {
		case m[4] == "float64" || m[4] == "int64":
			want = "a number"
		case m[4] == "bool":
			want = "true or false"
		case strings.HasPrefix(m[4], "[]"):
			want = "a list"
		case m[4] != "string":
			want = "keys with values"
		}
		return fmt.Errorf("%s: %s is needed, not %s", m[1], want, have)
	}
	return errors.New(first)
}

// check looks for what no price can be.
func (m Model) check() error {
	prices := []float64{m.Input, m.Output, m.Cached, m.CacheWrite, m.CacheWriteHour}
	if l := m.Long; l != nil {
		prices = append(prices, l.Input, l.Output, l.Cached, l.CacheWrite, l.CacheWriteHour)
		if l.Tokens <= 0 {
			return errors.New("long wants the number of tokens from which it holds")
		}
	}
	for _, p := range prices {
		if p < 0 || math.IsNaN(p) || math.IsInf(p, 0) {
			return fmt.Errorf("%v is no price", p)
		}
	}
	if m.Window < 0 {
		return fmt.Errorf("a window of %d tokens", m.Window)
	}
	if free := "%s nothing; where that is meant, add free: true"; !m.Free {
		switch {
		case m.Input == 0 && m.Output == 0:
			return fmt.Errorf(free, "input and output cost")
		case m.Input == 0:
			return fmt.Errorf(free, "input costs")
		case m.Output == 0:
			return fmt.Errorf(free, "output costs")
		}
	}
	return nil
}

// Named is what is known of a model at its maker's, or at whoever is the first
// by name to serve it.
func (t Table) Named(name string) (Model, bool) {
	for _, id := range slices.Sorted(maps.Keys(t.Providers)) {
		if m, ok := t.Providers[id].Models[name]; ok {
			return m, true
		}
	}
	return Model{}, false
}

// Find is what is known of a model at an endpoint. A provider that names the
// host wins over one that takes any.
func (t Table) Find(baseURL, name string) (Model, bool) {
	u, err := url.Parse(baseURL)
	if err != nil {
		return Model{}, false
	}
	host, withPort := strings.ToLower(u.Hostname()), strings.ToLower(u.Host)
	for _, any := range []bool{false, true} {
		for _, p := range t.Providers {
			here := slices.Contains(p.Hosts, host) || slices.Contains(p.Hosts, withPort)
			if any {
				here = slices.Contains(p.Hosts, "*")
			}
			if m, ok := p.Models[name]; here && ok {
				return m, true
			}
		}
	}
	return Model{}, false
}
