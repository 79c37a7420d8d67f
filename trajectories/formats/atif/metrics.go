package atif

import (
	"encoding/json"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/trajectories"
)

// extraMetrics is the extra data of metrics: counts for which ATIF has no field.
type extraMetrics struct {
	Reasoning      int64 `json:"reasoning_tokens,omitempty"`
	CacheWrite     int64 `json:"cache_write_tokens,omitempty"`
	CacheWriteHour int64 `json:"cache_write_hour_tokens,omitempty"`
	Unpriced       int64 `json:"unpriced_calls,omitempty"`
}

// metrics returns the metrics of a call; nil if the call has neither usage nor cost.
func (b *builder) metrics(c *trajectories.Call) *Metrics {
	u := c.Usage
	if u == (model.Usage{}) && c.Cost == 0 {
		return nil
	}
	m := &Metrics{Prompt: &u.Prompt, Completion: &u.Completion, Cost: knownCost(c.Cost, u)}
	if u.CacheRead > 0 {
		m.Cached = &u.CacheRead
	}
	m.Extra = b.extra(extraMetrics{u.Reasoning, u.CacheWrite, u.CacheWriteHour, u.Unpriced})
	return m
}

// knownCost returns the cost, or nil if it is unknown. A cost of 0 means free.
func knownCost(c model.Cost, u model.Usage) *float64 {
	if c == 0 && u.Unpriced > 0 {
		return nil
	}
	return ptr(float64(c))
}

// totals returns the totals of the outcome or, without an outcome, of the attempt's own
// calls, with the number of steps of the document.
func (b *builder) totals() *FinalMetrics {
	var u model.Usage
	var cost model.Cost
	calls := len(b.t.FailedCalls)
	add := func(c trajectories.Call) { u, cost = u.Add(c.Usage), cost+c.Cost }
	for _, c := range b.t.FailedCalls {
		add(c)
	}
	for _, e := range b.t.Entries {
		if e.Call != nil {
			calls++
			add(*e.Call)
		}
	}
	for _, c := range trajectories.NotesOf[trajectories.Summary](b.t) {
		add(trajectories.Call(c))
	}
	if o := b.t.Outcome; o != nil {
		calls, u, cost = o.Steps, o.Usage, o.Cost
	}
	m := &FinalMetrics{Steps: ptr(int64(len(b.steps)))}
	if u != (model.Usage{}) || cost != 0 {
		m.Prompt, m.Completion, m.Cached, m.Cost = &u.Prompt, &u.Completion, &u.CacheRead, knownCost(cost, u)
	}
	m.Extra = b.extra(struct {
		Calls int `json:"model_calls,omitempty"`
		extraMetrics
	}{calls, extraMetrics{u.Reasoning, u.CacheWrite, u.CacheWriteHour, u.Unpriced}})
	return m
}

// usage returns the usage and the cost in metrics. It also reads counts in the extra data
// that mini or other agents wrote.
func (m *Metrics) usage() (model.Usage, model.Cost) {
	var u model.Usage
	if m == nil {
		return model.Usage{Unpriced: 1}, 0
	}
	var x struct {
		extraMetrics
		Details struct {
			Reasoning int64 `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
		CacheCreation int64 `json:"cache_creation_input_tokens"`
	}
	_ = json.Unmarshal(m.Extra, &x) // the extra data can have any form
	u = model.Usage{
		Prompt: value(m.Prompt), Completion: value(m.Completion), CacheRead: value(m.Cached),
		Reasoning:  max(x.Reasoning, x.Details.Reasoning),
		CacheWrite: max(x.CacheWrite, x.CacheCreation), CacheWriteHour: x.CacheWriteHour, Unpriced: x.Unpriced,
	}
	if m.Cost == nil && u.Unpriced == 0 {
		u.Unpriced = 1
	}
	return u, model.Cost(value(m.Cost))
}

// value returns *p, or the zero value for nil.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
