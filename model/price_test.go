package model_test

import (
	"math"
	"testing"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/model"
)

// Each cost is computed by hand in the comment next to it.
func TestCost(t *testing.T) {
	gpt := model.Price{Input: 1.25, Cached: 0.125, Output: 10}
	claude := model.Price{
		Input: 3, Cached: 0.30, CacheWrite: 3.75, CacheWriteHour: 6, Output: 15,
		Long: &model.LongContextPrice{Threshold: 200_000, Input: 6, Cached: 0.60, CacheWrite: 7.50, Output: 22.50},
	}
	tests := map[string]struct {
		price model.Price
		usage model.Usage
		want  float64
	}{
		"no cache": {
			gpt,
			model.Usage{Prompt: 10_000, Completion: 1_000},
			0.0225, // 0.01 M x 1.25 = 0.0125; 0.001 M x 10 = 0.0100
		},
		"cached reads": {
			gpt,
			model.Usage{Prompt: 100_000, CacheRead: 80_000, Completion: 2_000},
			0.055, // 0.02 M x 1.25 = 0.025; 0.08 M x 0.125 = 0.010; 0.002 M x 10 = 0.020
		},
		"reasoning is completion": {
			gpt,
			model.Usage{Prompt: 4_000, Completion: 30_000, Reasoning: 29_000},
			0.305, // 0.004 M x 1.25 = 0.005; 0.03 M x 10 = 0.300; the 29,000 are among the 30,000
		},
		"cache writes": {
			claude,
			model.Usage{Prompt: 50_000, CacheRead: 30_000, CacheWrite: 15_000, Completion: 1_000},
			0.09525, // 0.005 M x 3 = 0.015; 0.03 M x 0.3 = 0.009; 0.015 M x 3.75 = 0.05625; 0.001 M x 15 = 0.015
		},
		"cache writes for an hour": {
			claude,
			model.Usage{Prompt: 50_000, CacheWrite: 40_000, CacheWriteHour: 10_000, Completion: 0},
			0.2025, // 0.01 M x 3 = 0.03; 0.03 M x 3.75 = 0.1125; 0.01 M x 6 = 0.06
		},
		"as long as it may be": {
			claude,
			model.Usage{Prompt: 200_000, Completion: 10_000},
			0.75, // 0.2 M x 3 = 0.60; 0.01 M x 15 = 0.15
		},
		"long": {
			claude,
			model.Usage{Prompt: 300_000, CacheRead: 100_000, CacheWrite: 100_000, Completion: 10_000},
			1.635, // 0.1 M x 6 = 0.60; 0.1 M x 0.6 = 0.06; 0.1 M x 7.5 = 0.75; 0.01 M x 22.5 = 0.225
		},
		"no price for the cache": {
			model.Price{Input: 2, Output: 8},
			model.Usage{Prompt: 1_000_000, CacheRead: 900_000},
			2, // 1 M x 2, read from a cache or not
		},
		"no price for hours": {
			model.Price{Input: 2, CacheWrite: 3},
			model.Usage{Prompt: 1_000_000, CacheWrite: 1_000_000, CacheWriteHour: 1_000_000},
			3, // 1 M x 3
		},
		"free":    {model.Price{Free: true}, model.Usage{Prompt: 1_000_000, Completion: 1_000_000}, 0},
		"nothing": {gpt, model.Usage{}, 0},
		"a provider that counts wrong": {
			gpt,
			model.Usage{Prompt: 10, CacheRead: 20_000},
			0.0025, // the excess of 19,990 gives no refund: 0.02 M x 0.125
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := float64(test.price.CostOf(test.usage)); math.Abs(got-test.want) > 1e-9 {
				t.Errorf("cost = %.6f, want %.6f", got, test.want)
			}
		})
	}
}

func TestUnknownPriceIsNotFree(t *testing.T) {
	if (model.Price{}).IsKnown() {
		t.Error("no price at all is known")
	}
	if !(model.Price{Free: true}).IsKnown() || !(model.Price{Output: 1}).IsKnown() {
		t.Error("a price is not known")
	}
}

// TestAddUsage finds fields that Add forgets.
func TestAddUsage(t *testing.T) {
	u := model.Usage{Prompt: 1, Completion: 2, CacheRead: 3, CacheWrite: 4, CacheWriteHour: 5, Reasoning: 6, Unpriced: 7}
	want := model.Usage{Prompt: 2, Completion: 4, CacheRead: 6, CacheWrite: 8, CacheWriteHour: 10, Reasoning: 12, Unpriced: 14}
	if got := u.Add(u); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestEstimateTokens(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "a": 1, "hello": 2, "\xff\xfe\xfd\xfc": 2, "1234567": 2, "12345678": 3} {
		assert.Equal(t, want, model.EstimateTextTokens(text), "%q: tokens", text)
	}
	got := model.EstimateTokens([]model.Message{
		{Role: model.User, Content: "hello"},
		{Images: []model.Image{{}}, ToolCalls: []model.ToolCall{{Name: "bash", Arguments: `{"command":"ls"}`}}},
	})
	if want := int64(4+2) + 4 + 1000 + 4 + 2 + 5; got != want {
		t.Errorf("%d tokens, want %d", got, want)
	}
}
