package route_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/route"
)

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
	if _, err := first.Query(t.Context(), nil); err == nil {
		t.Error("the first model was dropped")
	}
}

// Each model sees only the provider data of its own replies.
func TestSet(t *testing.T) {
	one, two := &signer{name: "one"}, &signer{name: "two"}
	m := route.Single(route.Named{Name: "one", Model: one})
	var history []model.Message
	query := func() string {
		reply, err := m.Query(t.Context(), history)
		if err != nil {
			t.Fatal(err)
		}
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
