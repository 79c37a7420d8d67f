package formats

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/minibench/mini/model"
)

// readHistory reads a line of OpenHands' output.jsonl, which is an attempt with its events.
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
		return nil, explainJSON(err)
	}
	if len(row.History) == 0 {
		return nil, errors.New("the history is empty")
	}
	b := newBuilder(src, string(formatEvents))
	b.header.InstanceID, b.header.ModelName = row.ID, cmp.Or(row.Metadata.LLM.Model, row.Metadata.LLM1.Model)
	b.addLoss("the dataset row and the instruction", boolInt(hasField(objectFields(data), "instance", "instruction")))
	b.setExtra(data, "history", "instance_id", "instruction", "instance")
	r := newEventReader(b)
	if err := r.read(row.History); err != nil {
		return nil, fmt.Errorf("history%w", err)
	}
	e := ending{status: r.status, submission: row.Result.Patch, cost: row.Metrics.Cost, fromWorktree: true, err: row.Error}
	if e.err != "" {
		e.status = errorStatus(e.err)
	} else if e.status == "" {
		e.status = "unfinished" // OpenHands writes lines only for attempts that ended
	}
	b.end(e)
	return b.file()
}

// readEvents reads a list of events.
func readEvents(src source, list []json.RawMessage) (*File, error) {
	r := newEventReader(newBuilder(src, string(formatEvents)))
	if err := r.read(list); err != nil {
		return nil, err
	}
	r.b.end(ending{status: r.status})
	return r.b.file()
}

// errorStatus returns the exit status for the error message that ended an attempt.
func errorStatus(text string) string {
	lower := strings.ToLower(text)
	for _, rule := range []struct{ word, status string }{
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
		if strings.Contains(lower, rule.word) {
			return rule.status
		}
	}
	return "error"
}

// parseTime parses a time of ISO 8601, as Python writes it. A time without a zone is in UTC.
// parseTime returns the zero time for other text.
func parseTime(text string) time.Time {
	if len(text) > len(time.DateOnly) && text[len(time.DateOnly)] == ' ' {
		text = text[:len(time.DateOnly)] + "T" + text[len(time.DateOnly)+1:]
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}
