package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Config says what a server is. Name and one of Command and URL are required.
type Config struct {
	// Name is what the user calls it; of the form of a tool's name.
	Name string
	// Command are a program and its arguments; Env is all of its environment.
	Command []string
	Env     []string
	// URL is where it listens. Token goes with every request to it, as
	// "Bearer TOKEN", and nowhere else; empty is none.
	URL   string
	Token string
	// Secrets are values that are taken out of all that the server says; Token is
	// one of them.
	Secrets []string
	// Offer names those of its tools that are wanted, as the server calls them;
	// empty means all.
	Offer []string
	// Timeout bounds a call; 0 leaves that to whoever calls.
	Timeout time.Duration
	// Version is mini's own, which the server is told.
	Version string
}

// Bounds of what a server has.
const (
	maxTools = 500
	maxPages = 100
)

// Times that a server has, beside the timeouts of calls.
const (
	connectTime = 30 * time.Second
	pingTime    = 2 * time.Second
)

// Info is what a server said of itself, bounded and of one line each.
type Info struct {
	Name     string   `json:"name"` // the user's
	Server   string   `json:"server,omitempty"`
	Version  string   `json:"version,omitempty"`
	Protocol string   `json:"protocol,omitempty"`
	Tools    []string `json:"tools"` // as the server calls them
}

// Server is one that was connected to. It is safe for concurrent use.
type Server struct {
	config  Config
	open    func(ctx context.Context) (*link, error)
	turn    chan struct{} // held by who looks at the following, or connects
	link    *link         // nil where the next call is to connect
	doubt   bool          // the link may be of no use
	closed  bool
	offered []*sdk.Tool
	info    Info
}

// Connect begins a session with a server and lists its tools. The error says which
// server, and what it said last.
func Connect(ctx context.Context, c Config) (*Server, error) {
	s := &Server{config: c, turn: make(chan struct{}, 1)}
	s.open = s.dial
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Server) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, connectTime, fmt.Errorf("it did not answer within %v", connectTime))
	defer cancel()
	l, err := s.use(ctx)
	if err == nil {
		err = s.list(ctx, l)
	}
	if err != nil {
		err = fmt.Errorf("MCP server %s: %s", s.config.Name, s.clean(reason(ctx, err)))
		return errors.Join(err, s.Close())
	}
	return nil
}

// reason is why ctx ended, if it did.
func reason(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return context.Cause(ctx).Error()
	}
	return err.Error()
}

// list asks for the tools, page by page.
func (s *Server) list(ctx context.Context, l *link) error {
	params := &sdk.ListToolsParams{}
	for range maxPages {
		page, err := l.session.ListTools(ctx, params)
		if err != nil {
			return l.explain(fmt.Errorf("list tools: %w", err))
		}
		for _, t := range page.Tools {
			if t != nil && s.wants(t.Name) {
				s.offered = append(s.offered, t)
			}
		}
		if len(s.offered) > maxTools {
			return fmt.Errorf("it has more than %d tools: name those that are wanted", maxTools)
		}
		if params.Cursor = page.NextCursor; params.Cursor == "" {
			return s.describe(l)
		}
	}
	return fmt.Errorf("its list of tools has more than %d pages", maxPages)
}

func (s *Server) describe(l *link) error {
	s.info = Info{Name: s.config.Name, Tools: []string{}}
	if r := l.session.InitializeResult(); r != nil {
		s.info.Protocol = s.line(r.ProtocolVersion)
		if r.ServerInfo != nil {
			s.info.Server, s.info.Version = s.line(r.ServerInfo.Name), s.line(r.ServerInfo.Version)
		}
	}
	for _, t := range s.offered {
		s.info.Tools = append(s.info.Tools, s.line(t.Name))
	}
	for _, name := range s.config.Offer {
		if !has(s.offered, name) {
			return fmt.Errorf("it has no tool %.80q", name)
		}
	}
	return nil
}

// Info is what the server said of itself when it was first connected to.
func (s *Server) Info() Info { return s.info }

// use is a session that may be used; one is begun where there is none.
func (s *Server) use(ctx context.Context) (*link, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if s.closed {
		return nil, errors.New("it was closed")
	}
	if s.link != nil && s.doubt {
		if err := s.link.ping(ctx); err != nil {
			s.link.close()
			s.link = nil
		}
		s.doubt = false
	}
	if s.link == nil {
		l, err := s.open(ctx)
		if err != nil {
			return nil, err
		}
		s.link = l
	}
	return s.link, nil
}

// suspect has the next call look first whether a session still works.
func (s *Server) suspect(l *link) {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.doubt = s.doubt || s.link == l
}

// Close ends the session, and the program. Calls that are under way get an error.
func (s *Server) Close() error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.closed = true
	if s.link != nil {
		s.link.close()
		s.link = nil
	}
	return nil
}

func has(list []*sdk.Tool, name string) bool {
	return slices.ContainsFunc(list, func(t *sdk.Tool) bool { return t.Name == name })
}

func (s *Server) wants(name string) bool {
	return len(s.config.Offer) == 0 || slices.Contains(s.config.Offer, name)
}
