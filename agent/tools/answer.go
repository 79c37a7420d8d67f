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
// ended. After that it answers with an error. The tool's goroutine keeps
// running until Call returns, because Go cannot stop it.
const GracePeriod = 2 * time.Second

// Bounds of errors and details, in bytes.
const (
	maxErrors  = 8 << 10
	maxDetails = 256 << 10
)

// Handle implements agent.ToolServer.
func (r *Registry) Handle(ctx context.Context, req agent.ToolRequest) agent.ToolResponse {
	if len(req.Args) == 0 {
		return outputResponse(r.listing())
	}
	name, args := req.Args[0], req.Args[1:]
	switch name {
	case HelpName, "--help", "-h":
		return r.help(args)
	}
	t := r.find(name)
	if t == nil {
		return r.unknownTool(name)
	}
	if len(args) > 0 && (args[0] == "--help" || args[0] == "-h") {
		return outputResponse(describeTool(t.spec))
	}
	if t.spec.InSandbox {
		return errorResponse(name, errors.New("this one runs in the sandbox, and mini-tool did not find it there"))
	}
	res, err := r.call(ctx, t, Call{Args: args, Input: req.Stdin, Dir: req.Dir, Environment: req.Nested, Attempt: req.Attempt})
	return r.toResponse(t.spec, res, err)
}

// callResult is what Tool.Call returned.
type callResult struct {
	res Result
	err error
}

// call runs a tool within its timeout.
func (r *Registry) call(ctx context.Context, t *registeredTool, c Call) (Result, error) {
	timeout := t.spec.Timeout
	if timeout == 0 {
		timeout = r.config.Timeout
	}
	callCtx, cancel := ctx, context.CancelFunc(func() {})
	if timeout > 0 {
		callCtx, cancel = context.WithTimeout(ctx, timeout)
	}
	defer cancel()
	done := make(chan callResult, 1)
	go func() { done <- callRecovered(callCtx, t, c) }()
	var result callResult
	select {
	case result = <-done:
	case <-callCtx.Done():
		select {
		case result = <-done:
		case <-time.After(GracePeriod):
			result.err = errors.New("it was stopped, and did not end")
		}
	}
	if errors.Is(callCtx.Err(), context.DeadlineExceeded) && result.err != nil {
		result.err = fmt.Errorf("it took longer than the %v that it may take, and was stopped", timeout)
	}
	return result.res, result.err
}

// callRecovered calls a tool and turns a panic into an error.
func callRecovered(ctx context.Context, t *registeredTool, c Call) (result callResult) {
	defer func() {
		if p := recover(); p != nil {
			result.err = fmt.Errorf("it broke down, by a defect of its own: %.200v", p)
			result.res = Result{Details: map[string]string{"panic": fmt.Sprintf("%.2000v", p), "stack": Clip(string(debug.Stack()), maxErrors)}}
		}
	}()
	result.res, result.err = t.Call(ctx, c)
	return result
}

// toResponse converts a tool's result or error to the response for mini-tool.
func (r *Registry) toResponse(s Spec, res Result, err error) agent.ToolResponse {
	resp := agent.ToolResponse{Details: encodeDetails(res.Details)}
	limit := s.MaxOutput
	if limit <= 0 {
		limit = r.config.MaxOutput
	}
	// Stay below the transport's limit, so that it never cuts off the note about
	// omitted output.
	limit = min(limit, env.MaxToolResponse-2*maxErrors)
	resp.Stdout, resp.ExitCode = []byte(clipSized(res.Output, limit, res.Size)), res.ExitCode
	if err == nil {
		return resp
	}
	if _, ok := errors.AsType[*UsageError](err); ok {
		resp.Stderr, resp.ExitCode = usageErrorText(s.Name, err.Error(), usageText(s)), 2
		return resp
	}
	errResp := errorResponse(s.Name, err)
	resp.Stderr, resp.ExitCode = errResp.Stderr, errResp.ExitCode
	return resp
}

// encodeDetails encodes details as JSON. It replaces details that cannot be
// encoded, or are larger than maxDetails, by a note.
func encodeDetails(details any) any {
	if details == nil {
		return nil
	}
	data, err := json.Marshal(details)
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

func outputResponse(text string) agent.ToolResponse {
	return agent.ToolResponse{ToolResponse: env.ToolResponse{Stdout: []byte(text)}}
}

func errorResponse(name string, err error) agent.ToolResponse {
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

// Clip shortens a text of more than limit bytes to its first limit bytes and a
// line that says how many bytes were left out. It never splits a character.
func Clip(text string, limit int) string { return clipSized(text, limit, 0) }

// clipSized is Clip for the beginning of a text of size bytes.
func clipSized(text string, limit int, size int64) string {
	size = max(size, int64(len(text)))
	if size <= int64(limit) {
		return text
	}
	end := min(max(limit, 0), len(text))
	for n := 0; end > 0 && end < len(text) && n < utf8.UTFMax && !utf8.RuneStart(text[end]); n++ {
		end--
	}
	return fmt.Sprintf("%s\n[%s: the last %d of %d bytes were left out]\n", text[:end], env.ToolProgram, size-int64(end), size)
}
