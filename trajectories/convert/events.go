package convert

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/minibench/mini/model"
)

// readHistory reads a line of OpenHands' output.jsonl: an instance with the
// events of its history.
func readHistory(src source, data []byte) (*File, error) {
	var row struct {
		ID       string            `json:"instance_id"`
		History  []json.RawMessage `json:"history"`
		Metadata struct {
			LLM struct {
				Model string `json:"model"`
			} `json:"llm_config"`
			LLM1 struct {
				Model string `json:"model"`
			} `json:"llm"`
		} `json:"metadata"`
		Metrics struct {
			Cost *model.Cost `json:"accumulated_cost"`
		} `json:"metrics"`
		Result struct {
			Patch string `json:"git_patch"`
		} `json:"test_result"`
		Error string `json:"error"`
	}
	if err := json.Unmarshal(data, &row); err != nil {
		return nil, explain(err)
	}
	if len(row.History) == 0 {
		return nil, errors.New("the history is empty")
	}
	b := newBuilder(src, string(formatEvents))
	b.header.InstanceID, b.header.ModelName = row.ID, cmp.Or(row.Metadata.LLM.Model, row.Metadata.LLM1.Model)
	b.lose("the row of the dataset and the instruction, beside the history", b2i(mentions(data, "instance", "instruction")))
	b.extra(data, "history", "instance_id", "instruction", "instance")
	r := newEventReader(b)
	if err := r.read(row.History); err != nil {
		return nil, fmt.Errorf("history%w", err)
	}
	e := ending{status: r.status, submission: row.Result.Patch, cost: row.Metrics.Cost, worktree: true, err: row.Error}
	if e.err != "" {
		e.status = statusOfError(e.err)
	} else if e.status == "" {
		e.status = "unfinished" // the row was written, so it did end
	}
	return r.end(e)
}

// readEvents reads the bare list of events.
func readEvents(src source, list []json.RawMessage) (*File, error) {
	r := newEventReader(newBuilder(src, string(formatEvents)))
	if err := r.read(list); err != nil {
		return nil, err
	}
	return r.end(ending{status: r.status})
}

// statusOfError sorts the words of an error that ended an attempt.
func statusOfError(text string) string {
	low := strings.ToLower(text)
	for _, sign := range []struct{ word, status string }{
		{"stuck", "stuck"},
		{"maximum iteration", "max_iterations"},
		{"max_iteration", "max_iterations"},
		{"maximum budget", "max_budget"},
		{"budget", "max_budget"},
		{"contextwindow", "ContextWindowExceededError"},
		{"agentruntime", "AgentRuntimeError"},
		{"llm", "llm_error"},
		{"litellm", "llm_error"},
		{"authentication", "AuthenticationError"},
		{"ratelimit", "RateLimitError"},
	} {
		if strings.Contains(low, sign.word) {
			return sign.status
		}
	}
	return "error"
}

// when reads a time as Python writes it; one without a zone is taken for UTC.
func when(text string) time.Time {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999", "2006-01-02 15:04:05.999999"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}
