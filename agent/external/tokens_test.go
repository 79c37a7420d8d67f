package external_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/agenttest/tokentest"
	"github.com/minibench/mini/agent/external"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/fake"
	"github.com/minibench/mini/model/fake/vllm"
	"github.com/minibench/mini/model/raw"
	"github.com/minibench/mini/model/retry"
	"github.com/minibench/mini/trajectories"
)

// goAgent is an environment whose agent is a function of the test.
type goAgent struct {
	env.Environment
	work func(*asker)
}

var exportedToken = regexp.MustCompile(`export MINI_TOKEN='([^']+)'`)

func (g goAgent) Execute(ctx context.Context, c env.Command) (env.Result, error) {
	if c.Bridge == nil {
		return g.Environment.Execute(ctx, c)
	}
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		conn, ok := c.Bridge().(net.Conn)
		if !ok {
			return nil, errors.New("the bridge has no net.Conn")
		}
		return conn, nil
	}}
	defer transport.CloseIdleConnections()
	g.work(&asker{ctx, &http.Client{Transport: transport}, exportedToken.FindStringSubmatch(c.Script)[1]})
	return env.Result{}, nil
}

// asker asks a model over the bridge.
type asker struct {
	ctx    context.Context //nolint:containedctx // of the command
	client *http.Client
	token  string
}

// post returns the status and the body of an answer.
func (a *asker) post(path string, body any) (status int, answer string) {
	data, _ := json.Marshal(body) // only values that can be encoded
	req, err := http.NewRequestWithContext(a.ctx, http.MethodPost, "http://bridge"+path, bytes.NewReader(data))
	if err != nil {
		return 0, err.Error()
	}
	req.Header.Set("Authorization", "Bearer "+a.token)
	resp, err := a.client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}

// dialogue is a conversation of a goAgent. Its system prompt is its name.
type dialogue struct {
	*asker
	stream   bool
	tools    bool
	messages []map[string]string
}

func (a *asker) begin(name, task string, stream, tools bool) *dialogue {
	return &dialogue{a, stream, tools, []map[string]string{{"role": "system", "content": name}, {"role": "user", "content": task}}}
}

var contents = regexp.MustCompile(`"content": ?"((?:[^"\\]|\\.)*)"`)

// ask asks for the next reply and answers it. It returns what the agent got.
func (d *dialogue) ask() string {
	body := map[string]any{"model": "m", "stream": d.stream, "messages": d.messages}
	if d.tools {
		body["tools"] = []any{map[string]any{"type": "function", "function": map[string]any{"name": "bash"}}}
	}
	status, answer := d.post("/v1/chat/completions", body)
	if status != http.StatusOK {
		panic(answer)
	}
	reply := ""
	for _, part := range contents.FindAllStringSubmatch(answer, -1) {
		text := ""
		if err := json.Unmarshal([]byte(`"`+part[1]+`"`), &text); err != nil {
			panic(err)
		}
		reply += text
	}
	d.messages = append(d.messages, map[string]string{"role": "assistant", "content": reply}, map[string]string{"role": "user", "content": "go on"})
	return answer
}

// withTokens gives the attempt a model of s, and its agent the function work.
func (a *attempt) withTokens(t *testing.T, s *vllm.Server, work func(*asker)) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	m := raw.New(raw.Config{BaseURL: provider(t, http.StripPrefix("/v1", s).ServeHTTP) + "/v1", Key: key, Price: price, HTTPClient: client})
	a.session.Model = retry.New(m, retry.Policy{MaxTries: 20, MaxWait: time.Minute})
	a.session.Environment = goAgent{a.session.Environment, work}
}

// The rows of an agent and its subagents have the tokens that the server has in its books. The title comes before the
// main conversation, and subagents are known by their second request.
func TestTokensEqualTheServersBooks(t *testing.T) {
	for i := range 4 {
		s := &vllm.Server{Drift: 0.3 * float64(i%2), Faults: 0.05, OldForm: i == 3, Reply: func(_ string, messages []model.Message) string {
			random := rand.New(rand.NewPCG(uint64(i), uint64(len(messages))))
			return fmt.Sprintf("%s %d %s", messages[0].Content, len(messages), strings.Repeat("word ", random.IntN(20)))
		}}
		a := newAttempt(t, fake.Config{})
		path := a.keepChildren(t)
		var shown []string
		stream := i < 2
		a.withTokens(t, s, func(p *asker) {
			title, digest := p.begin("title", "fix it", stream, false), p.begin("digest", "Make it short.", stream, false)
			main := p.begin("main", "fix it", stream, true)
			first, second := p.begin("first", "Look around.", stream, true), p.begin("second", "fix it and say more", stream, true)
			shown = append(shown, title.ask())
			for range 3 {
				shown = append(shown, main.ask(), first.ask(), digest.ask(), second.ask())
			}
			shown = append(shown, main.ask())
		})
		out := a.runWith(t, agent.Config{}, external.Definition{Command: "x"}, external.Config{Tokens: true})
		if out.Class != trajectories.Submitted || out.Steps != 14 {
			t.Fatalf("outcome %+v", out)
		}
		for _, answer := range shown {
			if strings.Contains(answer, "token_id") || strings.Contains(answer, "logprob") {
				t.Errorf("the agent got tokens that it did not ask for: %.300s", answer)
			}
		}
		tr := readValid(t, path)
		require.Equal(t, 2, len(tr.Children), "children")
		numbers := map[string]int{"title": -1, "digest": -1}
		for n, c := range tr.Children {
			numbers[strings.Fields(repliesOf(c))[0]] = n + 1
		}
		require.Equal(t, 3, numbers["first"]+numbers["second"], "subagents")
		tokentest.Check(t, path, s.Calls(""), func(reply string) int { return numbers[strings.Fields(reply)[0]] })
	}
}

// A server that sends no tokens ends the attempt, with the message that mini's own agent gives.
func TestServerWithoutTokens(t *testing.T) {
	for _, stream := range []bool{false, true} {
		a := newAttempt(t, fake.Config{})
		answer := ""
		a.withTokens(t, &vllm.Server{Silent: true, Reply: func(string, []model.Message) string { return "hello" }}, func(p *asker) {
			_, answer = p.post("/v1/chat/completions", map[string]any{"stream": stream, "messages": []map[string]string{{"role": "user", "content": "fix it"}}})
		})
		out := a.runWith(t, agent.Config{}, external.Definition{Command: "x"}, external.Config{Tokens: true})
		if out.Class != trajectories.Provider || out.Steps != 1 || !strings.Contains(out.Error, "the server sends no token ids") || !strings.Contains(out.Hint, "model.tokens needs a server") {
			t.Errorf("outcome %+v", out)
		}
		if !strings.Contains(answer, "the server sends no token ids") {
			t.Errorf("the agent got %s", answer)
		}
	}
}
