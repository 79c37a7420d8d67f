// Package decider asks an external program or server for decisions about
// commands. A program receives the question as JSON on standard input; a server
// receives it by POST.
//
// The answer is one word (allow, ask or deny) or a JSON object {"decision":
// "deny", "reason": "..."}. Any other answer, or a missing one, is an error. By
// default the policy then denies the command.
package decider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/policy"
	"github.com/minibench/mini/internal/text"
)

// Bounds of an answer: maxAnswer in bytes, maxReason in characters.
const (
	maxAnswer = 64 << 10
	maxReason = 4000
)

// DefaultTimeout bounds an answer if no timeout is set.
const DefaultTimeout = 30 * time.Second

// parseAnswer decodes an answer.
func parseAnswer(data []byte) (policy.Answer, error) {
	if len(data) > maxAnswer {
		return policy.Answer{}, fmt.Errorf("the answer is longer than %d KB", maxAnswer>>10)
	}
	trimmed := bytes.TrimSpace(data)
	var a policy.Answer
	if !bytes.HasPrefix(trimmed, []byte("{")) {
		a.Action = agent.DecisionAction(trimmed)
	} else {
		dec := json.NewDecoder(bytes.NewReader(trimmed))
		if err := dec.Decode(&a); err != nil {
			return policy.Answer{}, errors.New("the answer is not a JSON object with the keys decision and reason")
		}
		if _, err := dec.Token(); !errors.Is(err, io.EOF) {
			return policy.Answer{}, errors.New("unexpected data after the JSON object of the answer")
		}
	}
	switch a.Action {
	case agent.Allow, agent.Ask, agent.Deny:
	case "":
		return policy.Answer{}, errors.New("the answer is empty or has no decision")
	default:
		return policy.Answer{}, fmt.Errorf("the answer is %q, not allow, ask or deny", text.ClipRunes(string(a.Action), 60))
	}
	a.Reason = text.ClipRunes(strings.ToValidUTF8(a.Reason, "\ufffd"), maxReason)
	return a, nil
}
