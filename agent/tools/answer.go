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

// GracePeriod is how long the registry waits for a call after its context has
// ended. After that it answers without the tool. The tool's goroutine keeps
// running until Call returns, because Go cannot stop it.
const GracePeriod = 2 * time.Second

// Bounds of errors and details, in bytes.
const (
	maxErrors  = 8 << 10
	maxDetails = 256 << 10
)

// Handle implements agent.ToolServer.
func (r *Registry) Handle(ctx context.Context, a agent.ToolRequest) agent.ToolResponse {
	if len(a.Args) == 0 {
		return outputAnswer(r.listing())
	}
	name, args := a.Args[0], a.Args[1:]
	switch name {
	case HelpName, "--help", "-h":
		return r.help(args)
	}
	t := r.find(name)
	if t == nil {
		return r.unknownTool(name)
	}
	if len(args) > 0 && (args[0] == "--help" || args[0] == "-h") {
		return outputAnswer(describeTool(t.spec))
	}
	if t.spec.Local {
		return errorAnswer(name, errors.New("this one runs in the sandbox, and mini-tool did not find it there"))
	}
	res, err := r.call(ctx, t, Call{Args: args, Input: a.Stdin, Dir: a.Dir, Environment: a.Nested, Attempt: a.Attempt})
	return r.toAnswer(t.spec, res, err)
}

// callResult is what Tool.Call returned.
type callResult struct {
	res Result
	err error
}

// call runs a tool within its timeout.
func (r *Registry) call(ctx context.Context, t *registeredTool, c Call) (Result, error) {
	limit := t.spec.Timeout
	if limit == 0 {
		limit = r.config.Timeout
	}
	callCtx, cancel := ctx, context.CancelFunc(func() {})
	if limit > 0 {
		callCtx, cancel = context.WithTimeout(ctx, limit)
	}
	defer cancel()
	done := make(chan callResult, 1)
	go func() { done <- callRecovered(callCtx, t, c) }()
	var o callResult
	select {
	case o = <-done:
	case <-callCtx.Done():
		select {
		case o = <-done:
		case <-time.After(GracePeriod):
			o.err = errors.New("it was stopped, and did not end")
		}
	}
	if errors.Is(callCtx.Err(), context.DeadlineExceeded) && o.err != nil {
		o.err = fmt.Errorf("it took longer than the %v that it may take, and was stopped", limit)
	}
	return o.res, o.err
}

// callRecovered calls a tool and turns a panic into an error.
func callRecovered(ctx context.Context, t *registeredTool, c Call) (o callResult) {
	defer func() {
		if p := recover(); p != nil {
			o.err = fmt.Errorf("it broke down, by a defect of its own: %.200v", p)
			o.res = Result{Details: map[string]string{"panic": fmt.Sprintf("%.2000v", p), "stack": Clip(string(debug.Stack()), maxErrors)}}
		}
	}()
	o.res, o.err = t.Call(ctx, c)
	return o
}

func (r *Registry) toAnswer(s Spec, res Result, err error) agent.ToolResponse {
	answer := agent.ToolResponse{Details: encodeDetails(res.Details)}
	limit := s.MaxOutput
	if limit <= 0 {
		limit = r.config.MaxOutput
	}
	// Stay below the transport's limit, so that it never cuts off the note about
	// omitted output.
	limit = min(limit, env.MaxToolResponse-2*maxErrors)
	answer.Stdout, answer.ExitCode = []byte(clipSized(res.Output, limit, res.Size)), res.ExitCode
	if err == nil {
		return answer
	}
	if _, ok := errors.AsType[*UsageError](err); ok {
		answer.Stderr, answer.ExitCode = usageErrorText(s.Name, err.Error(), usageText(s)), 2
		return answer
	}
	failed := errorAnswer(s.Name, err)
	answer.Stderr, answer.ExitCode = failed.Stderr, failed.ExitCode
	return answer
}

// encodeDetails returns the details of an answer in a form that can be
// recorded. Values that cannot be encoded, or are too large, are replaced by a
// note.
func encodeDetails(given any) any {
	if given == nil {
		return nil
	}
	data, err := json.Marshal(given)
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

func outputAnswer(text string) agent.ToolResponse {
	return agent.ToolResponse{ToolResponse: env.ToolResponse{Stdout: []byte(text)}}
}

func errorAnswer(name string, err error) agent.ToolResponse {
	text := env.ToolProgram + ": " + name + ": " + strings.TrimRight(err.Error(), "\n")
	return agent.ToolResponse{ToolResponse: env.ToolResponse{Stderr: []byte(Clip(text, maxErrors) + "\n"), ExitCode: 1}}
}

// usageErrorText returns the error text of an invalid call, with the usage.
func usageErrorText(name, text, usage string) []byte {
	if name != "" {
		text = name + ": " + text
	}
	return []byte(Clip(env.ToolProgram+": "+strings.TrimRight(text, "\n"), maxErrors) + "\n" + Clip(usage, maxErrors))
}

// Clip returns the first most bytes of a text and a line that says how many
// were left out. It never splits a character.
func Clip(text string, most int) string { return clipSized(text, most, 0) }

// clipSized is Clip for the beginning of a text that had size bytes.
func clipSized(text string, most int, size int64) string {
	size = max(size, int64(len(text)))
	if size <= int64(most) {
		return text
	}
	at := min(max(most, 0), len(text))
	for n := 0; at > 0 && at < len(text) && n < utf8.UTFMax && !utf8.RuneStart(text[at]); n++ {
		at--
	}
	return fmt.Sprintf("%s\n[%s: the last %d of %d bytes were left out]\n", text[:at], env.ToolProgram, size-int64(at), size)
}
