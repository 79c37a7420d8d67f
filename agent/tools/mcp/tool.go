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

// tool is one of a server's.
type tool struct {
	server *Server
	name   string // as the server calls it
	spec   tools.Spec
	schema object
}

func newTool(s *Server, t *sdk.Tool, name string) *tool {
	o := newObject(t.InputSchema)
	limit := s.config.Timeout
	if limit > 0 {
		limit += spare
	}
	return &tool{s, t.Name, tools.Spec{
		Name: name, Usage: o.usage(name), About: firstSentence(s.clean(t.Description)), Help: o.help(s.clean(t.Description)),
		Timeout: limit,
	}, o}
}

// spare is what a call may take longer than its limit until it is ended from
// outside: the server is given up before, and that is what is told. It goes on
// with what it does, for all that mini knows.
const spare = 2 * time.Second

// limited is ctx with the limit of a call.
func (s *Server) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := s.config.Timeout
	if limit <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("it took longer than the %v that it may take, and was given up", limit))
}

// Spec implements tools.Tool.
func (t *tool) Spec() tools.Spec { return t.spec }

// Details are what goes on record beside the answer.
type Details struct {
	Server     string         `json:"server"`
	Tool       string         `json:"tool"` // as the server calls it
	Arguments  map[string]any `json:"arguments,omitempty"`
	Structured any            `json:"structured,omitempty"`
}

// Call implements tools.Tool.
func (t *tool) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	args, err := t.schema.arguments(c)
	if err != nil {
		return tools.Result{}, err
	}
	ctx, cancel := t.server.limited(ctx)
	defer cancel()
	d := Details{Server: t.server.config.Name, Tool: t.name, Arguments: args}
	l, err := t.server.use(ctx)
	if err != nil {
		return tools.Result{Details: t.server.details(d)}, t.server.failed(ctx, "cannot be reached", err)
	}
	res, err := l.session.CallTool(ctx, &sdk.CallToolParams{Name: t.name, Arguments: args})
	if err == nil {
		return t.result(res, d), nil
	}
	if wire, ok := asWire(err); ok && ctx.Err() == nil {
		if wire.Code == jsonrpc.CodeInvalidParams {
			return tools.Result{Details: t.server.details(d)}, tools.Usagef("the server refuses it: %s", t.server.clean(wire.Message))
		}
		return tools.Result{Details: t.server.details(d)}, t.server.failed(ctx, "answers with an error", errors.New(wire.Message))
	}
	t.server.suspect(l)
	if ctx.Err() == nil {
		err = l.explain(err)
	}
	return tools.Result{Details: t.server.details(d)}, t.server.failed(ctx, "did not answer", err)
}

// failed is what is told of a call that the server has no answer to.
func (s *Server) failed(ctx context.Context, how string, err error) error {
	return fmt.Errorf("the MCP server %s %s: %s", s.config.Name, how, s.clean(reason(ctx, err)))
}

// asWire finds an error that the server itself answered with.
func asWire(err error) (*jsonrpc.Error, bool) {
	if errors.Is(err, sdk.ErrConnectionClosed) {
		return nil, false
	}
	return errors.AsType[*jsonrpc.Error](err)
}
