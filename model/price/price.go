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
		return Table{}, fmt.Errorf("read prices: %w", err)
	}
	owners := map[[2]string]string{} // of a model at a host
	for name, p := range t.Providers {
		if len(p.Hosts) == 0 {
			return Table{}, fmt.Errorf("read prices: provider %s has no hosts; name them, or write \"*\" for any", name)
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
	if !m.Free && m.Input == 0 && m.Output == 0 {
		return errors.New("input and output cost nothing; where that is meant, add free: true")
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
