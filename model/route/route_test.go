package route_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/route"
)

// recordingModel is a model that counts its calls.
type recordingModel struct {
	name  string  // the name in its replies
	errs  []error // errors of its first calls
	calls int
}

func (v *recordingModel) Query(context.Context, []model.Message) (model.Reply, error) {
	v.calls++
	reply := model.Reply{
		Model: v.name, Tries: 2, Cost: 1, Usage: model.Usage{Prompt: 10},
		Requests: []model.Request{{HTTPStatus: 10 * v.calls}, {HTTPStatus: 10*v.calls + 1}},
	}
	if v.calls <= len(v.errs) && v.errs[v.calls-1] != nil {
		return reply, v.errs[v.calls-1]
	}
	return reply, nil
}

func named(models ...*recordingModel) []route.Named {
	var named []route.Named
	for i, m := range models {
		named = append(named, route.Named{Name: string(rune('a' + i)), Model: m})
	}
	return named
}

// answers returns the names of the models that answer n calls.
func answers(t *testing.T, m model.Model, n int) string {
	t.Helper()
	var who strings.Builder
	for range n {
		reply, err := m.Query(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		who.WriteString(reply.Model)
	}
	return who.String()
}

func TestInterleave(t *testing.T) {
	for sequence, want := range map[string]string{"": "abcabcab", "\x00\x00\x01": "aabaabaa", "\x02": "cccccccc"} {
		var indices []int
		for _, b := range []byte(sequence) {
			indices = append(indices, int(b))
		}
		m, err := route.Interleave(named(&recordingModel{}, &recordingModel{}, &recordingModel{}), indices)
		if err != nil {
			t.Fatal(err)
		}
		if got := answers(t, m, 8); got != want {
			t.Errorf("%v: %s, want %s", indices, got, want)
		}
	}
	for _, bad := range [][]int{{0, 3}, {-1}} {
		if _, err := route.Interleave(named(&recordingModel{}, &recordingModel{}, &recordingModel{}), bad); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}

func TestRoulette(t *testing.T) {
	const calls = 300
	choices := func(seed uint64) string {
		return answers(t, route.Roulette(named(&recordingModel{}, &recordingModel{}, &recordingModel{}), seed), calls)
	}
	first := choices(1)
	if first != choices(1) {
		t.Error("the same seed gives other choices")
	}
	if first == choices(2) {
		t.Error("another seed gives the same choices")
	}
	for _, name := range []string{"a", "b", "c"} {
		if n := strings.Count(first, name); n < calls/5 || n > calls/2 {
			t.Errorf("%s answered %d of %d calls", name, n, calls)
		}
	}
}

func TestFallback(t *testing.T) {
	fails := func(s model.Status) error { return &model.Error{Status: s, Err: errors.New("x")} }
	tests := map[string]struct {
		on    []model.Status
		a, b  []error
		who   string // models that answer; ! is a failure
		asked []int
	}{
		"nobody fails":                {nil, nil, nil, "aaa", []int{3, 0}},
		"the first fails, once":       {nil, []error{nil, fails(model.RateLimited)}, nil, "abb", []int{2, 2}},
		"both fail":                   {nil, []error{fails(model.ProviderError)}, []error{fails(model.ProviderError)}, "!bb", []int{1, 3}},
		"a failure that is not named": {[]model.Status{model.RateLimited}, []error{fails(model.ProviderError)}, nil, "!aa", []int{3, 0}},
		"a failure that is named":     {[]model.Status{model.ContentRefused}, []error{fails(model.ContentRefused)}, nil, "bbb", []int{1, 3}},
		"caused by the conversation":  {nil, []error{fails(model.ContextWindowExceeded)}, nil, "!aa", []int{3, 0}},
		"not an error of a provider":  {nil, []error{errors.New("a defect")}, nil, "!aa", []int{3, 0}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			a, b := &recordingModel{errs: test.a}, &recordingModel{errs: test.b}
			m := route.Fallback(named(a, b), test.on...)
			var who strings.Builder
			for range 3 {
				reply, err := m.Query(t.Context(), nil)
				if err != nil {
					reply.Model = "!"
				}
				who.WriteString(reply.Model)
			}
			if who.String() != test.who || !slices.Equal([]int{a.calls, b.calls}, test.asked) {
				t.Errorf("%s after %d and %d calls, want %s after %v", &who, a.calls, b.calls, test.who, test.asked)
			}
		})
	}
}

// TestProviderDataOnlyForItsModel checks that other models do not get ProviderData,
// and that the history is not modified.
func TestProviderDataOnlyForItsModel(t *testing.T) {
	a, b := &dataModel{data: "a's"}, &dataModel{data: "b's"}
	m, err := route.Interleave([]route.Named{{"a", a}, {"b", b}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	history := []model.Message{{Role: model.Assistant, ProviderData: []byte("of before")}}
	for range 4 {
		reply, err := m.Query(t.Context(), history)
		if err != nil {
			t.Fatal(err)
		}
		history = append(history, reply.Message)
	}
	if a.received != "of before,|of before,a's,,|" || b.received != "of before,,|of before,,b's,,|" {
		t.Errorf("the first received %s, the second %s", a.received, b.received)
	}
	if string(history[1].ProviderData) != "a's" || string(history[2].ProviderData) != "b's" {
		t.Error("the history was changed")
	}
}

// dataModel is a model that returns ProviderData.
type dataModel struct {
	data     string // ProviderData of its replies
	received string // ProviderData of the messages that it received
}

func (m *dataModel) Query(_ context.Context, messages []model.Message) (model.Reply, error) {
	for _, message := range messages {
		m.received += string(message.ProviderData) + ","
	}
	m.received += "|"
	return model.Reply{Message: model.Message{Role: model.Assistant, ProviderData: []byte(m.data)}}, nil
}

func TestFallbackStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a, b := &recordingModel{errs: []error{&model.Error{Status: model.ProviderError}}}, &recordingModel{}
	if _, err := route.Fallback(named(a, b)).Query(ctx, nil); err == nil || b.calls > 0 {
		t.Errorf("error %v after %d calls of the second", err, b.calls)
	}
}

// TestFallbackRestarts checks that the deltas of the failed model are voided.
func TestFallbackRestarts(t *testing.T) {
	streaming := func(text string, err error) model.Model {
		return modelFunc(func(ctx context.Context) (model.Reply, error) {
			if listener := model.DeltaListener(ctx); listener != nil && text != "" {
				listener(model.Delta{Text: text})
			}
			return model.Reply{}, err
		})
	}
	failed := &model.Error{Status: model.RateLimited}
	for _, test := range []struct{ first, want string }{{"half", "half ! whole "}, {"", "whole "}} {
		got := ""
		ctx := model.WithDeltas(t.Context(), func(d model.Delta) {
			if d.Restart {
				got += "! "
			} else {
				got += d.Text + " "
			}
		})
		m := route.Fallback([]route.Named{{"a", streaming(test.first, failed)}, {"b", streaming("whole", nil)}})
		if _, err := m.Query(ctx, nil); err != nil || got != test.want {
			t.Errorf("deltas %q, want %q; %v", got, test.want, err)
		}
	}
}

type modelFunc func(context.Context) (model.Reply, error)

func (f modelFunc) Query(ctx context.Context, _ []model.Message) (model.Reply, error) { return f(ctx) }
