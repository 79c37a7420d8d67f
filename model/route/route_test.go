package route_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
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
		require.NoError(t, err)
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
		require.NoError(t, err)
		assert.Equal(t, want, answers(t, m, 8), "%v", indices)
	}
	for _, bad := range [][]int{{0, 3}, {-1}} {
		_, err := route.Interleave(named(&recordingModel{}, &recordingModel{}, &recordingModel{}), bad)
		assert.Error(t, err, "%v is taken", bad)
	}
}

func TestRoulette(t *testing.T) {
	const calls = 300
	choices := func(seed uint64) string {
		return answers(t, route.Roulette(named(&recordingModel{}, &recordingModel{}, &recordingModel{}), seed), calls)
	}
	first := choices(1)
	assert.Equal(t, choices(1), first, "the same seed gives other choices")
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
	require.NoError(t, err)
	history := []model.Message{{Role: model.Assistant, ProviderData: []byte("of before")}}
	for range 4 {
		reply, err := m.Query(t.Context(), history)
		require.NoError(t, err)
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

// signer signs its replies, and keeps the signatures of the last prompt.
type signer struct {
	name string
	seen string
}

func (s *signer) Query(_ context.Context, messages []model.Message) (model.Reply, error) {
	s.seen = ""
	for _, m := range messages {
		s.seen += string(m.ProviderData) + ";"
	}
	return model.Reply{Message: model.Message{Role: model.Assistant, ProviderData: []byte(`"` + s.name + `"`)}}, nil
}

// refuser refuses all calls.
type refuser struct{ status model.Status }

func (r *refuser) Query(context.Context, []model.Message) (model.Reply, error) {
	return model.Reply{}, &model.Error{Status: r.status, Err: errors.New("no such model")}
}

// A new model that refuses its first call is dropped; one that is down is not.
func TestSetDropsRefusingModel(t *testing.T) {
	var dropped []string
	m := route.Single(route.Named{Name: "one", Model: &signer{name: "one"}})
	m.OnDrop = func(d, used route.Named, _ error) { dropped = append(dropped, d.Name+" for "+used.Name) }
	m.Set(route.Named{Name: "two", Model: &refuser{model.BadRequest}})
	m.Set(route.Named{Name: "three", Model: &refuser{model.AuthenticationError}})
	reply, err := m.Query(t.Context(), nil)
	if err != nil || string(reply.Message.ProviderData) != `"one"` || strings.Join(dropped, ", ") != "three for two, two for one" {
		t.Errorf("%s, %v, dropped %v", reply.Message.ProviderData, err, dropped)
	}
	m.Set(route.Named{Name: "down", Model: &refuser{model.ProviderError}})
	if _, err := m.Query(t.Context(), nil); err == nil || len(dropped) != 2 {
		t.Errorf("%v, dropped %v", err, dropped)
	}
	first := route.Single(route.Named{Name: "only", Model: &refuser{model.BadRequest}})
	_, err = first.Query(t.Context(), nil)
	assert.Error(t, err, "the first model was dropped")
}

// Each model sees only the provider data of its own replies.
func TestSet(t *testing.T) {
	one, two := &signer{name: "one"}, &signer{name: "two"}
	m := route.Single(route.Named{Name: "one", Model: one})
	var history []model.Message
	query := func() string {
		reply, err := m.Query(t.Context(), history)
		require.NoError(t, err)
		history = append(history, reply.Message)
		return reply.Model
	}
	first := query()
	m.Set(route.Named{Name: "two", Model: two})
	second, third := query(), query()
	if first != "" || second != "two" || third != "two" {
		t.Errorf("replies are of %q, %q, %q", first, second, third)
	}
	if one.seen != "" || two.seen != `;"two";` {
		t.Errorf("the models saw %q and %q", one.seen, two.seen)
	}
}
