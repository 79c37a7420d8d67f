package model

import "cmp"

// Price holds prices in US dollars per million tokens. The zero Price means that
// the price is unknown, not that it is free.
type Price struct {
	Input  float64 `yaml:"input" json:"input" check:"min=0" hint:"it is in dollars per million tokens"`
	Output float64 `yaml:"output" json:"output" check:"min=0" hint:"it is in dollars per million tokens"` // completion tokens, reasoning included
	// Cached applies to prompt tokens read from the provider's cache, CacheWrite to
	// those written to the cache, and CacheWriteHour instead to those written for an
	// hour. The defaults are Input, Input and CacheWrite.
	Cached         float64 `yaml:"cached" json:"cached" check:"min=0" hint:"it is in dollars per million tokens"`
	CacheWrite     float64 `yaml:"cache_write" json:"cache_write,omitempty" check:"min=0" hint:"it is in dollars per million tokens"`
	CacheWriteHour float64 `yaml:"cache_write_hour" json:"cache_write_hour,omitempty" check:"min=0" hint:"it is in dollars per million tokens"`
	// Free declares that a price of 0 is intended, as for a self-hosted server.
	Free bool `yaml:"free" json:"free,omitempty"`
	// Long applies to all tokens of a call whose prompt exceeds Long.Threshold;
	// nil if the price does not depend on the prompt's length.
	Long *LongContextPrice `yaml:"long" json:"long,omitempty"`
}

// LongContextPrice is the price of calls with long prompts.
type LongContextPrice struct {
	Threshold      int64   `yaml:"tokens" json:"tokens"` // longest prompt at the normal price; tokens
	Input          float64 `yaml:"input" json:"input" check:"min=0" hint:"it is in dollars per million tokens"`
	Output         float64 `yaml:"output" json:"output" check:"min=0" hint:"it is in dollars per million tokens"`
	Cached         float64 `yaml:"cached" json:"cached" check:"min=0" hint:"it is in dollars per million tokens"`
	CacheWrite     float64 `yaml:"cache_write" json:"cache_write,omitempty" check:"min=0" hint:"it is in dollars per million tokens"`
	CacheWriteHour float64 `yaml:"cache_write_hour" json:"cache_write_hour,omitempty" check:"min=0" hint:"it is in dollars per million tokens"`
}

// IsKnown reports whether p is a known price.
func (p Price) IsKnown() bool { return p != Price{} }

// CostOf returns the cost of one call.
func (p Price) CostOf(u Usage) Cost {
	if l := p.Long; l != nil && u.Prompt > l.Threshold {
		p = Price{Input: l.Input, Output: l.Output, Cached: l.Cached, CacheWrite: l.CacheWrite, CacheWriteHour: l.CacheWriteHour}
	}
	cached, written := cmp.Or(p.Cached, p.Input), cmp.Or(p.CacheWrite, p.Input)
	hour := cmp.Or(p.CacheWriteHour, written)
	fresh := max(0, u.Prompt-u.CacheRead-u.CacheWrite)
	return Cost((float64(fresh)*p.Input + float64(u.CacheRead)*cached +
		float64(u.CacheWrite-u.CacheWriteHour)*written + float64(u.CacheWriteHour)*hour +
		float64(u.Completion)*p.Output) / 1e6)
}
