package subagents_test

import (
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/agenttest/tokentest"
	"github.com/minibench/mini/agent/tools/subagents"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/fake/vllm"
	"github.com/minibench/mini/model/openai"
	"github.com/minibench/mini/model/retry"
	"github.com/minibench/mini/trajectories"
)

// nameOf returns the name of a task, or of that which a reply is about.
func nameOf(text string) string {
	return regexp.MustCompile("PARENT|ALPHA|BETA|GAMMA").FindString(text)
}

// replyWithSubagents begins each reply with the name of the task. PARENT starts ALPHA and BETA at the same time, and
// ALPHA starts GAMMA.
func replyWithSubagents(_ string, messages []model.Message) string {
	name, n := nameOf(messages[1].Content), len(messages)/2 // the number of the reply, from 1
	random := rand.New(rand.NewPCG(uint64(len(name)), uint64(n)))
	text := fmt.Sprintf("%s %d %s", name, n, strings.Repeat("word ", random.IntN(20)))
	delegate := map[string]string{
		"PARENT 2": toolCall("delegate", "ALPHA work") + "\n" + toolCall("delegate", "BETA work"), "ALPHA 2": toolCall("delegate", "GAMMA work"),
	}[fmt.Sprintf("%s %d", name, n)]
	switch {
	case delegate != "":
		return text + bash(delegate)
	case n == 5 && name == "PARENT":
		return text + submit
	case n == 5:
		return text + submitReport("done")
	}
	return text + bash("echo "+strings.Repeat("word ", random.IntN(20)))
}

// The rows of the attempt and its subagents have the tokens that the server has in its books.
func TestTokensEqualTheServersBooks(t *testing.T) {
	for i := range 4 {
		s := &vllm.Server{Reply: replyWithSubagents, Drift: 0.3 * float64(i%2), Faults: 0.05}
		server := httptest.NewServer(s)
		t.Cleanup(server.Close)
		client, err := openai.New(openai.Config{Name: "fake", BaseURL: server.URL, Tokens: true, Stream: i%4 < 2, HTTPClient: server.Client()})
		require.NoError(t, err)
		w := newFixture(t, nil)
		w.options.Config.Depth = 2
		path := filepath.Join(w.dir, "journal.jsonl")
		journal, err := trajectories.Create(path, trajectories.Header{Format: trajectories.Format, Attempt: 1})
		require.NoError(t, err)
		w.options.Journals = subagents.JournalDir{Dir: w.dir, ParentJournal: "journal.jsonl", Subdir: "children", Header: trajectories.Header{Format: trajectories.Format}}
		w.session = agent.Session{Model: retry.New(client, retry.Policy{MaxTries: 20, MaxWait: time.Minute}), Recorder: journal}
		w.run(t.Context())
		require.NoError(t, journal.Close())
		if w.out.Class != trajectories.Submitted || w.out.ChildSteps != 15 {
			t.Fatalf("outcome %+v", w.out)
		}
		numbers := map[string]int{"PARENT": 0}
		for n := range trajectories.ChildJournals(path) {
			numbers[nameOf(w.child(fmt.Sprint(n)).Header.Parent.Task)] = n
		}
		tokentest.Check(t, path, s.Calls(""), func(reply string) int { return numbers[nameOf(reply)] })
	}
}
