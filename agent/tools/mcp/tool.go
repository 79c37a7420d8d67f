package mcp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/minibench/mini/agent/tools"
)

// tool implements tools.Tool by calling a server.
type tool struct {
	server *Server
	name   string // the server's name for the tool
	spec   tools.Spec
	schema argumentSchema
}

func newTool(s *Server, t *sdk.Tool, name string) *tool {
	schema := newArgumentSchema(t.InputSchema)
	timeout := s.config.Timeout
	if timeout > 0 {
		timeout += timeoutMargin
	}
	return &tool{s, t.Name, tools.Spec{
		Name: name, Usage: schema.usage(name), Description: firstSentence(s.sanitize(t.Description)), Help: schema.help(s.sanitize(t.Description)),
		Timeout: timeout,
	}, schema}
}

// timeoutMargin is added to the timeout that the registry enforces, so that the
// timeout of withTimeout expires first and its error is reported. The server
// may still continue the call.
const timeoutMargin = 2 * time.Second

// withTimeout returns ctx with the timeout of a call.
func (s *Server) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	timeout := s.config.Timeout
	if timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, timeout, fmt.Errorf("it took longer than the %v that it may take, and was given up", timeout))
}

// Spec implements tools.Tool.
func (t *tool) Spec() tools.Spec { return t.spec }

// Details are recorded with a call.
type Details struct {
	Server     string         `json:"server"`
	Tool       string         `json:"tool"` // the server's name for the tool
	Arguments  map[string]any `json:"arguments,omitempty"`
	Structured any            `json:"structured,omitempty"`
}

// Call implements tools.Tool.
func (t *tool) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	args, err := t.schema.parseArguments(c)
	if err != nil {
		return tools.Result{}, err
	}
	ctx, cancel := t.server.withTimeout(ctx)
	defer cancel()
	d := Details{Server: t.server.config.Name, Tool: t.name, Arguments: args}
	sess, err := t.server.currentSession(ctx)
	if err != nil {
		return tools.Result{Details: t.server.encodeDetails(d)}, t.server.callError(ctx, "cannot be reached", err)
	}
	res, err := sess.client.CallTool(ctx, &sdk.CallToolParams{Name: t.name, Arguments: args})
	if err == nil {
		return t.toResult(res, d), nil
	}
	if rpcErr, ok := serverError(err); ok && ctx.Err() == nil {
		if rpcErr.Code == jsonrpc.CodeInvalidParams {
			return tools.Result{Details: t.server.encodeDetails(d)}, tools.Usagef("the server refuses it: %s", t.server.sanitize(rpcErr.Message))
		}
		return tools.Result{Details: t.server.encodeDetails(d)}, t.server.callError(ctx, "answers with an error", errors.New(rpcErr.Message))
	}
	if ctx.Err() == nil { // after a timeout the session stays open for other calls
		err = sess.explain(err)
		t.server.closeSession(sess)
	}
	return tools.Result{Details: t.server.encodeDetails(d)}, t.server.callError(ctx, "did not answer", err)
}

// callError returns the error of a call without a valid answer. failure says
// what the server did.
func (s *Server) callError(ctx context.Context, failure string, err error) error {
	return fmt.Errorf("the MCP server %s %s: %s", s.config.Name, failure, s.sanitize(contextError(ctx, err)))
}

// serverError returns the JSON-RPC error that the server answered with, if any.
func serverError(err error) (*jsonrpc.Error, bool) {
	if errors.Is(err, sdk.ErrConnectionClosed) {
		return nil, false
	}
	return errors.AsType[*jsonrpc.Error](err)
}
