package route_test

import (
	"context"
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

// Each model sees only the provider data of its own replies.
func TestSwitch(t *testing.T) {
	one, two := &signer{name: "one"}, &signer{name: "two"}
	m := route.NewSwitch(route.Named{Name: "one", Model: one})
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
