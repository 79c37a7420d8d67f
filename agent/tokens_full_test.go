//go:build full

package agent_test

import (
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/agenttest"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/fake/vllm"
	"github.com/minibench/mini/model/openai"
	"github.com/minibench/mini/model/retry"
	"github.com/minibench/mini/trajectories"
)

// randomReply returns the reply of a conversation: sometimes one with a format error, and in the end the submission.
func randomReply(conversation string, messages []model.Message) string {
	random := rand.New(rand.NewPCG(uint64(len(conversation)), uint64(len(messages))))
	switch last := messages[len(messages)-1].Content; {
	case strings.HasPrefix(last, "Sum up"):
		return "It looked at some files, and nothing else happened."
	case len(messages) > 14:
		return bash(submit)
	case random.IntN(6) == 0:
		return "I do not know which command is the next one."
	}
	return "The file number " + fmt.Sprint(random.IntN(1000)) + " comes next.\n" + bash("cat a.txt # "+strings.Repeat("word ", random.IntN(30)))
}

// The journal has the tokens that the server has in its books: streamed or not, with format errors, failed requests,
// compaction, and a resume in the middle.
func TestTokensEqualTheServersBooks(t *testing.T) {
	for _, drift := range []float64{0, 0.3} {
		s := &vllm.Server{Reply: randomReply, Faults: 0.01, Drift: drift}
		server := httptest.NewServer(s)
		t.Cleanup(server.Close)
		segments, replies := 0, 0
		for i := range 100 {
			name := fmt.Sprintf("conversation %d%s", i, strings.Repeat("x", i%7))
			client, err := openai.New(openai.Config{
				Name: "fake", BaseURL: server.URL, Tokens: true, Stream: i%2 == 0, Headers: map[string]string{"X-Conversation": name},
			})
			if err != nil {
				t.Fatal(err)
			}
			m := retry.New(client, retry.Policy{MaxTries: 20, MaxWait: time.Minute})
			cfg := config()
			cfg.MaxFormatErrors, cfg.StepLimit = 20, 40
			if i%5 == 0 {
				cfg.Compaction, cfg.CompactionTokens = agent.CompactionSummarize, 300
				cfg.SummaryTemplate = "Sum up {{len .parts}} parts: {{range .parts}}{{.text}}{{end}}"
			}
			path := filepath.Join(t.TempDir(), "journal.jsonl")
			a := attemptWithTokens(t, cfg, m, path, i%3 == 0)
			checkBooks(t, a, s.Calls(name))
			began, all := countSegments(a)
			segments, replies = segments+began, replies+all
		}
		if drift == 0 && segments > 100*4 || drift > 0 && segments < 300 {
			t.Errorf("drift %v: %d segments of %d replies", drift, segments, replies)
		}
	}
}

// attemptWithTokens runs an attempt and returns what its journal has. If interrupted is set, it stops after six
// calls and resumes.
func attemptWithTokens(t *testing.T, cfg agent.Config, m model.Model, path string, interrupted bool) *trajectories.Attempt {
	t.Helper()
	journal, err := trajectories.Create(path, trajectories.Header{Format: trajectories.Format, Attempt: 1})
	if err != nil {
		t.Fatal(err)
	}
	repo := agenttest.NewRepository(t)
	session := agent.Session{Model: m, Environment: repo.Sandbox, Repository: repo, Recorder: journal, Task: agent.Task{Text: "task"}}
	limited := cfg
	if interrupted {
		limited.StepLimit = 6
	}
	a, err := agent.New(limited)
	if err != nil {
		t.Fatal(err)
	}
	out := a.Run(t.Context(), session)
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}
	if interrupted {
		out = continueAttempt(t, cfg, session, path)
	}
	if !out.Class.IsResult() { // a compacted conversation may reach the limit
		t.Errorf("%s: %s %s", path, out.ExitStatus, out.Error)
	}
	read, err := trajectories.Fold(trajectories.Read(path))
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// continueAttempt resumes the attempt of a journal.
func continueAttempt(t *testing.T, cfg agent.Config, session agent.Session, path string) trajectories.Outcome {
	t.Helper()
	state, err := agent.ReadResumeState(trajectories.Read(path))
	if err != nil {
		t.Fatal(err)
	}
	journal, err := trajectories.Reopen(path, trajectories.Resume{Record: state.LastRecord})
	if err != nil {
		t.Fatal(err)
	}
	a, err := agent.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	repo := agenttest.NewRepository(t)
	session.Recorder, session.Resume, session.Environment, session.Repository = journal, state, repo.Sandbox, repo
	out := a.Run(t.Context(), session)
	if err := journal.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

// checkBooks compares the tokens of all replies, summaries and abandoned calls with the server's.
func checkBooks(t *testing.T, a *trajectories.Attempt, books []vllm.Call) {
	t.Helper()
	var kept []model.Tokens
	add := func(c *trajectories.Call) {
		if c != nil && c.Tokens != nil {
			kept = append(kept, model.Tokens{Prompt: c.Tokens.Prompt(), Completion: c.Tokens.Completion, Logprobs: c.Tokens.Logprobs, Texts: c.Tokens.Texts})
		}
	}
	for i := range a.Entries {
		add(a.Entries[i].Call)
	}
	for i := range a.FailedCalls {
		add(&a.FailedCalls[i])
	}
	summaries := 0
	for range trajectories.NotesOf[trajectories.Summary](a) {
		summaries++
	}
	if len(kept)+summaries != len(books) {
		t.Errorf("%d calls and %d summaries are kept, and the server answered %d", len(kept), summaries, len(books))
	}
	for _, tokens := range kept {
		if !slices.ContainsFunc(books, func(c vllm.Call) bool { return cmp.Equal(c.Tokens, tokens) }) {
			t.Errorf("these tokens are not in the server's books: %v", tokens)
		}
	}
}

// countSegments returns the numbers of replies and of those that do not continue the tokens before.
func countSegments(a *trajectories.Attempt) (segments, replies int) {
	var before *trajectories.Tokens
	for _, e := range a.Entries {
		if e.Cause != trajectories.CauseReply {
			continue
		}
		if _, all := e.Call.Tokens.Continues(before); !all {
			segments++
		}
		replies++
		before = e.Call.Tokens
	}
	return segments, replies
}
