// Package decider asks others what becomes of a command: a program, which gets
// the question as JSON on its input, or a server, which gets it by POST.
//
// The answer is one word (allow, ask or deny), or a JSON object
// {"decision": "deny", "reason": "..."}. Whatever else comes, or does not come in
// time, is an error, which a policy takes for a deny.
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
)

// Bounds of an answer, in bytes and in characters.
const (
	maxAnswer = 64 << 10
	maxReason = 4000
)

// DefaultTimeout bounds an answer where nobody says otherwise.
const DefaultTimeout = 30 * time.Second

// parse reads an answer.
func parse(data []byte) (policy.Answer, error) {
	if len(data) > maxAnswer {
		return policy.Answer{}, fmt.Errorf("the answer is longer than %d KB", maxAnswer>>10)
	}
	text := bytes.TrimSpace(data)
	var a policy.Answer
	if !bytes.HasPrefix(text, []byte("{")) {
		a.Action = agent.Verb(text)
	} else {
		dec := json.NewDecoder(bytes.NewReader(text))
		if err := dec.Decode(&a); err != nil {
			return policy.Answer{}, errors.New("the answer is no JSON object with the keys decision and reason")
		}
		if _, err := dec.Token(); !errors.Is(err, io.EOF) {
			return policy.Answer{}, errors.New("something follows the JSON object of the answer")
		}
		if decisions(text) > 1 {
			return policy.Answer{}, errors.New("the answer has more than one decision")
		}
	}
	switch a.Action {
	case agent.Allow, agent.Ask, agent.Deny:
	case "":
		return policy.Answer{}, errors.New("the answer is empty, or has no decision")
	default:
		return policy.Answer{}, fmt.Errorf("the answer is %q, which is none of allow, ask and deny", shorten(string(a.Action), 60))
	}
	a.Reason = shorten(strings.ToValidUTF8(a.Reason, "\ufffd"), maxReason)
	return a, nil
}

// decisions counts the keys of an object that are taken for the decision: of two,
// the last would hold.
func decisions(object []byte) (n int) {
	dec := json.NewDecoder(bytes.NewReader(object))
	if _, err := dec.Token(); err != nil {
		return 0
	}
	for dec.More() {
		key, err := dec.Token()
		var value json.RawMessage
		if err != nil || dec.Decode(&value) != nil {
			break
		}
		if name, ok := key.(string); ok && strings.EqualFold(name, "decision") {
			n++
		}
	}
	return n
}

func shorten(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return text
}
