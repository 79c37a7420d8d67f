// Package price knows the prices of models at their providers, their context
// windows, and whether they accept images.
//
// The package embeds a table, table.yaml, with date and source; a user's file has the
// same form. A table lists the hosts of each provider, because the same name on
// another host may be a different model or have a different price.
//
//	table, err := price.Embedded()
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

// Table holds the prices of models by provider.
type Table struct {
	// Date is the day of the prices, as YYYY-MM-DD; Source says where they are
	// from.
	Date      string              `yaml:"date"`
	Source    string              `yaml:"source"`
	Providers map[string]Provider `yaml:"providers"`
}

// Provider is a provider of models.
type Provider struct {
	// Hosts are its API hosts, such as "api.openai.com" or "localhost:8000" with
	// a port; "*" matches any host.
	Hosts  []string         `yaml:"hosts"`
	Models map[string]Model `yaml:"models"` // by the name in requests
}

// Model holds the price and properties of a model.
type Model struct {
	model.Price `yaml:",inline"`
	// ContextWindow is the maximum length of a prompt, in tokens; 0 if unknown.
	ContextWindow int64 `yaml:"window"`
	// AcceptsImages reports whether prompts may contain images.
	AcceptsImages bool `yaml:"images"`
}

//go:embed table.yaml
var embedded []byte

// Embedded returns the embedded table.
func Embedded() (Table, error) { return Parse(embedded) }

// Parse reads a table. Its error names the invalid entry.
func Parse(data []byte) (Table, error) {
	var t Table
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&t); err != nil && !errors.Is(err, io.EOF) {
		return Table{}, fmt.Errorf("read prices: %w", describeError(err))
	}
	if err := d.Decode(&struct{}{}); !errors.Is(err, io.EOF) {
		return Table{}, errors.New("read prices: more than one document; remove what follows the line ---")
	}
	if len(t.Providers) == 0 {
		return Table{}, errors.New("read prices: no providers; each has hosts, and models with their prices")
	}
	owners := map[[2]string]string{} // providers by host and model
	for name, p := range t.Providers {
		if len(p.Hosts) == 0 {
			return Table{}, fmt.Errorf("read prices: provider %s has no hosts; name them, or write \"*\" for any", name)
		}
		for i, host := range p.Hosts {
			if strings.ContainsAny(host, "/ ") {
				return Table{}, fmt.Errorf("read prices: %q of %s is not a host; omit http:// and the path, as in api.openai.com or localhost:8000", host, name)
			}
			p.Hosts[i] = strings.ToLower(host)
		}
		for id, m := range p.Models {
			if err := m.validate(); err != nil {
				return Table{}, fmt.Errorf("read prices: %s of %s: %w", id, name, err)
			}
			for _, host := range p.Hosts {
				if other := owners[[2]string{host, id}]; other != "" {
					return Table{}, fmt.Errorf("read prices: %s at %s is in %s and in %s; remove one", id, host, min(name, other), max(name, other))
				}
				owners[[2]string{host, id}] = name
			}
		}
	}
	return t, nil
}

// Errors of the YAML library, which name Go types.
var (
	unknownKey = lazyregexp.New(`^(line \d+): field (.*) not found in type (.*)$`)
	wrongType  = lazyregexp.New("^(line \\d+): cannot unmarshal !!(\\w+)(?: `(.*)`)? into (.*)$")
)

// describeError returns the first error of a YAML file as one line for the user.
func describeError(err error) error {
	typeError, ok := errors.AsType[*yaml.TypeError](err)
	if !ok || len(typeError.Errors) == 0 {
		return err
	}
	first := strings.ReplaceAll(typeError.Errors[0], "\n", " ")
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
	if m := wrongType.FindStringSubmatch(first); m != nil {
		want, have := "a string", cmp.Or(m[3], map[string]string{"seq": "a list", "map": "keys with values"}[m[2]], "this")
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
		return fmt.Errorf("%s: want %s, have %s", m[1], want, have)
	}
	return errors.New(first)
}

// validate checks the values of an entry.
func (m Model) validate() error {
	prices := []float64{m.Input, m.Output, m.Cached, m.CacheWrite, m.CacheWriteHour}
	if l := m.Long; l != nil {
		prices = append(prices, l.Input, l.Output, l.Cached, l.CacheWrite, l.CacheWriteHour)
		if l.Threshold <= 0 {
			return errors.New("long: set tokens to a positive number")
		}
	}
	for _, p := range prices {
		if p < 0 || math.IsNaN(p) || math.IsInf(p, 0) {
			return fmt.Errorf("invalid price %v", p)
		}
	}
	if m.ContextWindow < 0 {
		return fmt.Errorf("invalid window %d", m.ContextWindow)
	}
	if format := "%s nothing; add free: true if that is intended"; !m.Free {
		switch {
		case m.Input == 0 && m.Output == 0:
			return fmt.Errorf(format, "input and output cost")
		case m.Input == 0:
			return fmt.Errorf(format, "input costs")
		case m.Output == 0:
			return fmt.Errorf(format, "output costs")
		}
	}
	return nil
}

// FindByName returns the entry of a model. If several providers have the model, the
// provider with the alphabetically first name counts.
func (t Table) FindByName(name string) (Model, bool) {
	for _, provider := range slices.Sorted(maps.Keys(t.Providers)) {
		if m, ok := t.Providers[provider].Models[name]; ok {
			return m, true
		}
	}
	return Model{}, false
}

// Find returns the entry of a model at an endpoint. A provider that lists the host
// takes precedence over one with "*".
func (t Table) Find(baseURL, name string) (Model, bool) {
	u, err := url.Parse(baseURL)
	if err != nil {
		return Model{}, false
	}
	host, withPort := strings.ToLower(u.Hostname()), strings.ToLower(u.Host)
	for _, wildcard := range []bool{false, true} {
		for _, p := range t.Providers {
			listed := slices.Contains(p.Hosts, host) || slices.Contains(p.Hosts, withPort)
			if wildcard {
				listed = slices.Contains(p.Hosts, "*")
			}
			if m, ok := p.Models[name]; listed && ok {
				return m, true
			}
		}
	}
	return Model{}, false
}
