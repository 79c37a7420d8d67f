package model

import "cmp"

// Price is what tokens cost, in US dollars per million. A zero Price means
// that the price is not known, which is not the same as free.
type Price struct {
	Input  float64 `yaml:"input" json:"input"`
	Output float64 `yaml:"output" json:"output"` // completion tokens, reasoning included
	// Cached are prompt tokens read from the provider's cache, CacheWrite those
	// written into it, for an hour CacheWriteHour. 0 means that these cost what
	// the others do: Input, Input and CacheWrite.
	Cached         float64 `yaml:"cached" json:"cached"`
	CacheWrite     float64 `yaml:"cache_write" json:"cache_write,omitempty"`
	CacheWriteHour float64 `yaml:"cache_write_hour" json:"cache_write_hour,omitempty"`
	// Free says that a price of nothing is meant, as of a server of one's own.
	Free bool `yaml:"free" json:"free,omitempty"`
	// Long is what all tokens of a call cost whose prompt is longer than its
	// Tokens; nil where length does not matter.
	Long *LongPrice `yaml:"long" json:"long,omitempty"`
}

// LongPrice is the price of calls with long prompts.
type LongPrice struct {
	Tokens         int64   `yaml:"tokens" json:"tokens"` // the longest prompt that is not long
	Input          float64 `yaml:"input" json:"input"`
	Output         float64 `yaml:"output" json:"output"`
	Cached         float64 `yaml:"cached" json:"cached"`
	CacheWrite     float64 `yaml:"cache_write" json:"cache_write,omitempty"`
	CacheWriteHour float64 `yaml:"cache_write_hour" json:"cache_write_hour,omitempty"`
}

// Known says whether there is a price at all.
func (p Price) Known() bool { return p != Price{} }

// Of returns the cost of one call.
func (p Price) Of(u Usage) Cost {
	if l := p.Long; l != nil && u.Prompt > l.Tokens {
		p = Price{Input: l.Input, Output: l.Output, Cached: l.Cached, CacheWrite: l.CacheWrite, CacheWriteHour: l.CacheWriteHour}
	}
	cached, written := cmp.Or(p.Cached, p.Input), cmp.Or(p.CacheWrite, p.Input)
	hour := cmp.Or(p.CacheWriteHour, written)
	fresh := max(0, u.Prompt-u.CacheRead-u.CacheWrite)
	return Cost((float64(fresh)*p.Input + float64(u.CacheRead)*cached +
		float64(u.CacheWrite-u.CacheWriteHour)*written + float64(u.CacheWriteHour)*hour +
		float64(u.Completion)*p.Output) / 1e6)
}
