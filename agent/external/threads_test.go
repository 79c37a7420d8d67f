package external_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/bridge"
	"github.com/minibench/mini/agent/external"
	"github.com/minibench/mini/agent/tools/subagents"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper/child/childtest"
	"github.com/minibench/mini/env/local"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/dialect"
	"github.com/minibench/mini/model/fake"
	"github.com/minibench/mini/model/raw"
	"github.com/minibench/mini/model/scripted"
	"github.com/minibench/mini/trajectories"
	"github.com/minibench/mini/trajectories/export"
	"github.com/minibench/mini/trajectories/formats/atif"
)

// keepChildren gives an attempt a journal in a file, and its subagents too. It returns the
// path of the attempt's.
func (a *attempt) keepChildren(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "journal.jsonl")
	j, err := trajectories.Create(path, trajectories.Header{InstanceID: "i", Attempt: 1})
	require.NoError(t, err)
	t.Cleanup(func() { _ = j.Close() }) // only read from now on
	a.session.Recorder = j
	a.session.NewChild = func(p trajectories.Parent) (agent.ChildJournal, error) {
		header := trajectories.Header{InstanceID: "i", Attempt: 1, Parent: &p}
		return subagents.JournalDir{Dir: dir, ParentJournal: "journal.jsonl", Subdir: "children", Header: header}.Create(header)
	}
	return path
}

// readValid reads the journals of an attempt, which must be valid.
func readValid(t *testing.T, path string) *trajectories.Attempt {
	t.Helper()
	paths := []string{path}
	for _, p := range trajectories.ChildJournals(path) {
		paths = append(paths, p)
	}
	for _, p := range paths {
		if _, err := trajectories.Fold(trajectories.CheckOrder(trajectories.Read(p))); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
	tr, _, err := export.ReadJournal(path, 0)
	require.NoError(t, err)
	return tr
}

// talk is a conversation of a test's agent.
type talk struct {
	history []model.Message
	headers map[string]string
	noTools bool
}

func talkOf(texts ...string) *talk {
	t := &talk{}
	for i, text := range texts {
		t.history = append(t.history, model.Message{Role: []model.Role{model.System, model.User}[i], Content: text})
	}
	return t
}

// ask is a request and its reply. After it, the results of the reply's calls are known.
func (c *talk) ask(reply string, calls ...model.ToolCall) bridge.Exchange {
	body, err := dialect.ParseBody([]byte(`{}`))
	if err != nil {
		panic(err)
	}
	x := bridge.Exchange{
		Dialect: "chat", Headers: c.headers, Request: body, Messages: append([]model.Message(nil), c.history...), HasTools: !c.noTools, Start: time.Now(),
		Reply: model.Reply{Message: model.Message{Role: model.Assistant, Content: reply, ToolCalls: calls}, Usage: model.Usage{Prompt: 10, Completion: 1}, Cost: 0.25, Tries: 1},
	}
	c.history = append(c.history, x.Reply.Message)
	for _, call := range calls {
		c.history = append(c.history, model.Message{Role: model.Tool, ToolCallID: call.ID, Content: "result of " + call.ID})
	}
	return x
}

func call(id, name, arguments string) model.ToolCall {
	return model.ToolCall{ID: id, Name: name, Arguments: arguments}
}

func bash(id string) model.ToolCall { return call(id, "bash", `{"command":"run `+id+`"}`) }

// TestThreads records conversations of an agent. want has the thread of each exchange, and
// the replies of each subagent.
func TestThreads(t *testing.T) {
	const system, findA, findB = "You are an agent.", "Find the place where a is set, and name its file.", "Find the place where b is set, and name its file."
	twoSpawns := []model.ToolCall{call("s1", "task", `{"prompt":"`+findA+`"}`), call("s2", "task", `{"items":[{"text":"`+findB+`"}]}`)}
	for name, tt := range map[string]struct {
		exchanges    func() []bridge.Exchange
		threads      string
		children     []string
		unattributed int
		refs         int // executions that started subagents
	}{
		"two by prompt, interleaved": {
			func() []bridge.Exchange {
				main, a, b := talkOf(system, "fix it"), talkOf(system, findA), talkOf(system, findB)
				return []bridge.Exchange{
					main.ask("both", twoSpawns...), a.ask("a1", bash("x1")), b.ask("b1", bash("x2")), a.ask("a2"), b.ask("b2", bash("x3")), b.ask("b3"), main.ask("done"),
				}
			}, "main 1 2 1 2 2 main", []string{"a1 a2", "b1 b2 b3"}, 0, 2,
		},
		"two with one prompt": {
			func() []bridge.Exchange {
				main, a, b := talkOf(system, "fix it"), talkOf(system, findA), talkOf(system, findA)
				return []bridge.Exchange{
					main.ask("both", twoSpawns[0], call("s3", "task", `{"prompt":"`+findA+`"}`)), a.ask("a1", bash("x1")), b.ask("b1", bash("x1")), a.ask("a2", bash("x2")), b.ask("b2", bash("x2")), b.ask("b3"), a.ask("a3"), main.ask("done"),
				}
			}, "main 1 2 1 2 2 1 main", []string{"a1 a2 a3", "b1 b2 b3"}, 0, 2,
		},
		"by header": {
			func() []bridge.Exchange {
				main, a, b := talkOf(system, "fix it"), talkOf(system, "go on"), talkOf(system, "go on")
				a.headers = map[string]string{"x-openai-subagent": "collab_spawn", "thread-id": "7"}
				b.headers = map[string]string{"x-claude-code-agent-id": "8"}
				main.headers = map[string]string{"thread-id": "6"}
				return []bridge.Exchange{main.ask("go", bash("x")), a.ask("a1"), b.ask("b1", bash("x")), a.ask("a2"), b.ask("b2"), main.ask("done")}
			}, "main 1 2 1 2 main", []string{"a1 a2", "b1 b2"}, 0, 1,
		},
		"more than there may be": {
			func() []bridge.Exchange {
				main := talkOf(system, "fix it")
				list := []bridge.Exchange{main.ask("go", bash("x"))}
				for i := range 65 {
					a := talkOf(system, "go on")
					a.headers = map[string]string{"x-claude-code-agent-id": fmt.Sprint(i)}
					list = append(list, a.ask("a"))
				}
				return append(list, main.ask("done"))
			}, "main " + strings.Join(numbers(63), " ") + " side side main", slices.Repeat([]string{"a"}, 63), 0, 1,
		},
		"a subagent of a subagent": {
			func() []bridge.Exchange {
				main, a, b := talkOf(system, "fix it"), talkOf(system, findA), talkOf(system, findB)
				return []bridge.Exchange{main.ask("go", twoSpawns[0]), a.ask("a1", twoSpawns[1]), b.ask("b1"), a.ask("a2"), main.ask("done")}
			}, "main 1 2 1 main", []string{"a1 a2", "b1"}, 0, 2,
		},
		"title": {
			func() []bridge.Exchange {
				const report = "The place where a is set is in the second line of a.txt."
				main, a, title := talkOf(system, "fix it"), talkOf(system, findA), talkOf("Write a title.", "fix it")
				router, digest := talkOf("Which one?", findA+" or not"), talkOf("Make it short.", report)
				title.noTools, router.noTools, digest.noTools = true, true, true
				return []bridge.Exchange{main.ask("go", twoSpawns[0]), title.ask("A fix"), router.ask("yes"), a.ask(report), digest.ask("a.txt"), main.ask("done")}
			}, "main side side 1 side main", []string{"The place where a is set is in the second line of a.txt."}, 0, 1,
		},
		"title first": {
			func() []bridge.Exchange {
				main, a, title := talkOf(system, "fix it"), talkOf(system, findA), talkOf("Write a title.", "fix it")
				title.noTools = true
				return []bridge.Exchange{title.ask("A fix"), main.ask("go", twoSpawns[0]), a.ask("a1", bash("x")), a.ask("a2"), main.ask("done")}
			}, "main main 1 1 main", []string{"a1 a2"}, 0, 1,
		},
		"no tools": {
			func() []bridge.Exchange {
				main, title := talkOf(system, "fix it"), talkOf("Write a title.", "fix it")
				main.noTools, title.noTools = true, true
				return []bridge.Exchange{main.ask("go"), title.ask("A fix"), main.ask("on"), main.ask("done")}
			}, "main side main main", nil, 0, 0,
		},
		"without the task": {
			func() []bridge.Exchange {
				main, a := talkOf(system, "Read the file with the task."), talkOf(system, findA)
				return []bridge.Exchange{main.ask("go", twoSpawns[0]), a.ask("a1"), main.ask("done")}
			}, "main 1 main", []string{"a1"}, 0, 1,
		},
		"one request that nothing continues": {
			func() []bridge.Exchange {
				main, other := talkOf(system, "fix it"), talkOf("Is it a topic?", "who knows")
				return []bridge.Exchange{main.ask("go", bash("x")), other.ask("no"), main.ask("done")}
			}, "main side main", nil, 0, 0,
		},
		"compaction of the main thread": {
			func() []bridge.Exchange {
				const summary = "All that was done so far: a is set in one place, which is found."
				main, a := talkOf(system, "fix it"), talkOf(system, findA)
				short := talkOf(system, "Go on: "+summary)
				return []bridge.Exchange{main.ask("go", twoSpawns[0]), a.ask("a1", bash("x")), a.ask("a2"), main.ask(summary), short.ask("go on", bash("y")), short.ask("done")}
			}, "main 1 1 main main main", []string{"a1 a2"}, 0, 1,
		},
		"unattributed": {
			func() []bridge.Exchange {
				main, a := talkOf(system, "fix it"), talkOf("You are another.", "Look around.")
				return []bridge.Exchange{main.ask("go", bash("x")), a.ask("a1", bash("y")), main.ask("on", bash("z")), a.ask("a2"), main.ask("done")}
			}, "main side main 1 main", []string{"a1 a2"}, 1, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAttempt(t, fake.Config{})
			path := a.keepChildren(t)
			exchanges := tt.exchanges()
			own, err := agent.New(agent.Config{SystemTemplate: "s", InstanceTemplate: "i", ObservationTemplate: "o", FormatErrorTemplate: "f", MaxFormatErrors: 3})
			require.NoError(t, err)
			out := own.RunLoop(t.Context(), a.session, func(_ context.Context, at *agent.Attempt) error {
				if err := external.Record(at, "fix it", exchanges); err != nil {
					return err
				}
				return &agent.Submitted{Source: trajectories.SourceWorktree}
			})
			if out.Steps != len(exchanges) || out.Cost != model.Cost(0.25*float64(len(exchanges))) || out.Class != trajectories.Submitted {
				t.Errorf("%d steps, cost %v, %+v", out.Steps, out.Cost, out)
			}
			tr := readValid(t, path)
			assert.Equal(t, tt.threads, threadsOf(t, path), "threads")
			if strings.Contains(repliesOf(tr), "A fix") {
				t.Error("the reply to a side call is in the main conversation")
			}
			require.Equal(t, len(tt.children), len(tr.Children), "children")
			unattributed, refs := 0, countRefs(tr)
			for i, c := range tr.Children {
				assert.Equal(t, tt.children[i], repliesOf(c), "child %d has the replies", i+1)
				if c.Header.Parent.Unattributed {
					unattributed++
				}
				refs += countRefs(c)
				if c.Outcome == nil || c.Outcome.Class != trajectories.Submitted {
					t.Errorf("child %d ended with %+v", i+1, c.Outcome)
				}
			}
			if unattributed != tt.unattributed || refs != tt.refs || (len(out.Warnings) > 0) != (unattributed > 0) {
				t.Errorf("%d unattributed, %d executions that started subagents, warnings %q", unattributed, refs, out.Warnings)
			}
		})
	}
}

// numbers returns 1 to n.
func numbers(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint(i+1))
	}
	return list
}

// threadsOf returns the thread of each exchange in a journal.
func threadsOf(t *testing.T, path string) string {
	t.Helper()
	var threads []string
	for r, err := range trajectories.Read(path) {
		require.NoError(t, err)
		var x trajectories.Exchange
		if r.Type != trajectories.TypeExchange {
			continue
		}
		require.NoError(t, json.Unmarshal(r.Data, &x))
		if x.Thread == trajectories.ThreadChild {
			x.Thread = fmt.Sprint(x.Child)
		}
		threads = append(threads, x.Thread)
	}
	return strings.Join(threads, " ")
}

func repliesOf(tr *trajectories.Attempt) string {
	var replies []string
	for _, e := range tr.Entries {
		if e.Cause == trajectories.CauseReply {
			replies = append(replies, e.Content)
		}
	}
	return strings.Join(replies, " ")
}

// countRefs counts the executions that started subagents.
func countRefs(tr *trajectories.Attempt) (n int) {
	for _, list := range tr.ChildrenByExecution() {
		n += min(len(list), 1)
	}
	return n
}

// TestSubagents runs an agent with two subagents at the same time. Their journals have what
// they did, and ATIF has their trajectories.
func TestSubagents(t *testing.T) {
	program, err := os.ReadFile("testdata/agent.py")
	require.NoError(t, err)
	const block = "```bash\\n%s\\n```"
	script, err := scripted.Parse("r", fmt.Appendf(nil, `
main-job:
  - {content: Both., tool_calls: [{name: task, arguments: {prompt: "Look at sub-a"}}, {name: task, arguments: {prompt: "Look at sub-b"}}]}
  - "`+block+`"
  - "`+block+`"
sub-a: ["`+block+`", "It says one."]
sub-b: ["`+block+`", "`+block+`", "It is short."]
`, "echo two >> a.txt", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "cat a.txt", "ls", "wc -l a.txt"))
	require.NoError(t, err)
	for _, args := range []string{"chat plain", "responses plain", "messages stream", "gemini plain"} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			a := newAttempt(t, fake.Config{Script: script})
			a.session.Task.Text = "Do the main-job"
			path, log := a.keepChildren(t), filepath.Join(t.TempDir(), "agent.json")
			out := a.run(t, agent.Config{}, external.Definition{
				Command: `python3 "$MINI_STATE/agent.py" ` + args, Env: map[string]string{"AGENT_LOG": log}, Files: map[string]string{"agent.py": string(program)},
			})
			if out.ExitStatus != "Submitted" || out.Steps != 8 || !bytes.Contains(out.Submission, []byte("+two")) {
				t.Fatalf("outcome %+v", out)
			}
			books := a.provider.Stats().Charged
			if out.Usage != books.Usage || books.Replies != 8 || out.Cost-books.Cost > 1e-12 || books.Cost-out.Cost > 1e-12 {
				t.Errorf("usage %+v, %v; charged %+v", out.Usage, out.Cost, books)
			}
			tr := readValid(t, path)
			if len(tr.Children) != 2 || countRefs(tr) != 2 {
				t.Fatalf("%d children, %d executions that started them", len(tr.Children), countRefs(tr))
			}
			for n, journal := range trajectories.ChildJournals(path) {
				own := log + ".1"
				if strings.Contains(tr.Children[n-1].Header.Parent.Task, "sub-b") {
					own = log + ".2"
				}
				var records []trajectories.Record
				for r, err := range trajectories.Read(journal) {
					require.NoError(t, err)
					records = append(records, r)
				}
				commands, observations, lastReply := readJournal(t, records, own)
				want := map[string]string{log + ".1": "cat a.txt: It says one.", log + ".2": "ls|wc -l a.txt: It is short."}[own]
				if got := strings.Join(commands, "|") + ": " + lastReply.Content; got != want || len(observations) != len(commands) {
					t.Errorf("child %d did %s, with %q; want %s", n, got, observations, want)
				}
			}
			checkATIF(t, tr)
		})
	}
}

// checkATIF checks the attempt's document, which has two subagents that a result names.
func checkATIF(t *testing.T, tr *trajectories.Attempt) {
	t.Helper()
	var b bytes.Buffer
	_, err := atif.Write(&b, tr, "")
	require.NoError(t, err)
	var doc struct {
		Subagents []struct {
			ID string `json:"trajectory_id"`
		} `json:"subagent_trajectories"`
	}
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil || len(doc.Subagents) != 2 {
		t.Fatalf("%d subagents, %v", len(doc.Subagents), err)
	}
	for _, s := range doc.Subagents {
		if n := bytes.Count(b.Bytes(), []byte(`"`+s.ID+`"`)); n < 2 {
			t.Errorf("%s is named %d times", s.ID, n)
		}
	}
}

// openBridge offers a bridge in a local sandbox, and returns its address and token.
func openBridge(tb testing.TB, m model.Model) (address, token string) {
	tb.Helper()
	sandbox, err := local.New(tb.Context(), local.Config{Dir: tb.TempDir(), Helper: childtest.Program(tb)})
	require.NoError(tb, err)
	b := bridge.New(tb.Context(), bridge.Config{
		Model: m, ModelName: "real", Dialects: []string{"chat"},
		Begin: func(bool) error { return nil }, Record: func(bridge.Exchange) error { return nil },
	})
	ctx, cancel := context.WithCancel(tb.Context())
	addresses, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = sandbox.Execute(ctx, env.Command{ // ends with cancel
			Script: "echo $MINI_BRIDGE; exec sleep 3600", Timeout: time.Hour, Bridge: b.Open,
			OnOutput: func(p []byte) { addresses <- strings.TrimSpace(string(p)) },
		})
	}()
	tb.Cleanup(func() {
		cancel()
		<-ended
		b.Close()
		assert.NoError(tb, sandbox.Close(context.WithoutCancel(tb.Context())))
	})
	return <-addresses, b.Token()
}

// provider is an HTTP server with one streamed answer.
func provider(tb testing.TB, answer http.HandlerFunc) string {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	s := &http.Server{Handler: answer, ReadHeaderTimeout: time.Minute}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(l) // ends with Close
	}()
	tb.Cleanup(func() {
		_ = s.Close() // connections are idle
		<-served
	})
	return "http://" + l.Addr().String()
}

const chunk = `data: {"id":"x","model":"real","choices":[{"index":0,"delta":{"content":"%s"}}]}` + "\n\n"

// TestSlowReaders: connections of an agent do not read their endless answers. The memory
// of this process, which has the provider too, stays bounded.
func TestSlowReaders(t *testing.T) {
	const readers = 8
	event := []byte(fmt.Sprintf(chunk, strings.Repeat("y", 60_000)))
	url := provider(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for r.Context().Err() == nil {
			if _, err := w.Write(event); err != nil {
				return
			}
		}
	})
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	address, token := openBridge(t, raw.New(raw.Config{BaseURL: url + "/v1", Price: price, HTTPClient: client}))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range readers {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		require.NoError(t, err)
		defer conn.Close()
		_, err = fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 41\r\n\r\n%s", token, `{"model":"m","stream":true,"messages":[]} `)
		require.NoError(t, err)
		if _, err := io.ReadFull(conn, make([]byte, 1000)); err != nil { // the answer has begun
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	const perReader = 4 << 20 // bytes: chunks in flight, buffers, and what was assembled of the reply
	if used := int64(after.HeapAlloc) - int64(before.HeapAlloc); used > readers*perReader {
		t.Errorf("%d slow readers use %d bytes", readers, used)
	} else {
		t.Logf("%d slow readers use %d bytes", readers, used)
	}
}
