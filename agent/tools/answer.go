package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/env"
)

// Grace is how long a call is waited for after its end: at its timeout, or when
// nobody is left to be answered. A tool that does not heed its ctx is answered for
// then. What it still does is done for nobody, and its goroutine ends when it
// ends: Go has no way to stop it.
const Grace = 2 * time.Second

// Bounds of what is recorded and told beside the output, in bytes.
const (
	maxErrors  = 8 << 10
	maxDetails = 256 << 10
)

// Answer implements agent.Toolbox.
func (r *Registry) Answer(ctx context.Context, a agent.Asked) agent.ToolAnswer {
	if len(a.Args) == 0 {
		return said(r.listing())
	}
	name, args := a.Args[0], a.Args[1:]
	switch name {
	case Help, "--help", "-h":
		return r.help(args)
	}
	t := r.find(name)
	if t == nil {
		return r.unknown(name)
	}
	if len(args) > 0 && (args[0] == "--help" || args[0] == "-h") {
		return said(explained(t.spec))
	}
	if t.spec.Local {
		return failed(name, errors.New("this one runs in the sandbox, and mini-tool did not find it there"))
	}
	res, err := r.call(ctx, t, Call{Args: args, Input: a.Input, Dir: a.Dir, Inside: a.Inside, Attempt: a.Attempt})
	return r.answerOf(t.spec, res, err)
}

// outcome is what a call came to.
type outcome struct {
	res Result
	err error
}

// call does a call within its time.
func (r *Registry) call(ctx context.Context, t *known, c Call) (Result, error) {
	limit := t.spec.Timeout
	if limit == 0 {
		limit = r.config.Timeout
	}
	within, cancel := ctx, context.CancelFunc(func() {})
	if limit > 0 {
		within, cancel = context.WithTimeout(ctx, limit)
	}
	defer cancel()
	done := make(chan outcome, 1)
	go func() { done <- guarded(within, t, c) }()
	var o outcome
	select {
	case o = <-done:
	case <-within.Done():
		select {
		case o = <-done:
		case <-time.After(Grace):
			o.err = errors.New("it was stopped, and did not end")
		}
	}
	if errors.Is(within.Err(), context.DeadlineExceeded) && o.err != nil {
		o.err = fmt.Errorf("it took longer than the %v that it may take, and was stopped", limit)
	}
	return o.res, o.err
}

// guarded is a call that may panic.
func guarded(ctx context.Context, t *known, c Call) (o outcome) {
	defer func() {
		if p := recover(); p != nil {
			o.err = fmt.Errorf("it broke down, by a defect of its own: %.200v", p)
			o.res = Result{Details: map[string]string{"panic": fmt.Sprintf("%.2000v", p), "stack": Clip(string(debug.Stack()), maxErrors)}}
		}
	}()
	o.res, o.err = t.Call(ctx, c)
	return o
}

func (r *Registry) answerOf(s Spec, res Result, err error) agent.ToolAnswer {
	answer := agent.ToolAnswer{Details: details(res.Details)}
	most := s.MaxOutput
	if most <= 0 {
		most = r.config.MaxOutput
	}
	// What carries it has a bound too, which is not to cut off the word of this one.
	most = min(most, env.MaxToolAnswer-2*maxErrors)
	answer.Output, answer.ExitCode = []byte(clipped(res.Output, most, res.Size)), res.ExitCode
	if err == nil {
		return answer
	}
	if _, ok := errors.AsType[*UsageError](err); ok {
		answer.Errors, answer.ExitCode = mistake(s.Name, err.Error(), usage(s)), 2
		return answer
	}
	bad := failed(s.Name, err)
	answer.Errors, answer.ExitCode = bad.Errors, bad.ExitCode
	return answer
}

// details are those of an answer in a form that can be recorded, whatever the tool
// gave: nothing of it may end the attempt.
func details(given any) any {
	if given == nil {
		return nil
	}
	data, err := marshal(given)
	switch {
	case err != nil:
		return map[string]string{"details_lost": Clip(err.Error(), maxErrors)}
	case len(data) > maxDetails:
		return map[string]int{"details_too_long": len(data)}
	case bytes.Equal(data, []byte("null")):
		return nil
	}
	return json.RawMessage(data)
}

// marshal is json.Marshal, where a method of a tool's own type may panic.
func marshal(v any) (data []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("they broke down: %.200v", p)
		}
	}()
	return json.Marshal(v)
}

func said(text string) agent.ToolAnswer {
	return agent.ToolAnswer{ToolAnswer: env.ToolAnswer{Output: []byte(text)}}
}

func failed(name string, err error) agent.ToolAnswer {
	text := env.ToolProgram + ": " + name + ": " + strings.TrimRight(err.Error(), "\n")
	return agent.ToolAnswer{ToolAnswer: env.ToolAnswer{Errors: []byte(Clip(text, maxErrors) + "\n"), ExitCode: 1}}
}

// mistake is the answer to a call that is none, with what would be one.
func mistake(name, text, usage string) []byte {
	if name != "" {
		text = name + ": " + text
	}
	return []byte(Clip(env.ToolProgram+": "+strings.TrimRight(text, "\n"), maxErrors) + "\n" + Clip(usage, maxErrors))
}

// Clip is the beginning of a text, most bytes of it at the utmost, with a line that
// says how much was left out. A character is kept whole or left out.
func Clip(text string, most int) string { return clipped(text, most, 0) }

// clipped is Clip for a text that was longer, once; then it had size bytes.
func clipped(text string, most int, size int64) string {
	size = max(size, int64(len(text)))
	if size <= int64(most) {
		return text
	}
	at := min(max(most, 0), len(text))
	for back := 0; at > 0 && at < len(text) && back < utf8.UTFMax && !utf8.RuneStart(text[at]); back++ {
		at--
	}
	return fmt.Sprintf("%s\n[%s: the last %d of %d bytes were left out]\n", text[:at], env.ToolProgram, size-int64(at), size)
}
