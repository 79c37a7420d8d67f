package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Config configures a Server. Name and either Command or URL are required.
type Config struct {
	// Name is the user's name for the server; it has the form of a tool's name.
	Name string
	// Command is a program and its arguments; Env is its entire environment.
	Command []string
	Env     []string
	// URL is the server's address. Token, unless empty, is sent as "Bearer
	// TOKEN" with every request to the host of URL, and to no other host.
	URL   string
	Token string
	// Secrets are values to remove from the server's texts, in addition to
	// Token.
	Secrets []string
	// AllowedTools names the tools to offer, by the server's names; empty means
	// all.
	AllowedTools []string
	// Timeout bounds a call; 0 means that only the caller's context bounds it.
	Timeout time.Duration
	// Version is mini's version, which is sent to the server.
	Version string
}

// Bounds of a server's list of tools: maxTools for the tools to offer, maxPages
// for the pages of the list.
const (
	maxTools = 500
	maxPages = 100
)

// connectTimeout bounds the first connection, including the list of tools.
const connectTimeout = 30 * time.Second

// Info describes a server. Its texts are bounded and have no line breaks.
type Info struct {
	Name     string   `json:"name"`               // the user's name for the server
	Server   string   `json:"server,omitempty"`   // the server's name for itself
	Version  string   `json:"version,omitempty"`  // of the server
	Protocol string   `json:"protocol,omitempty"` // version of the protocol in use
	Tools    []string `json:"tools"`              // the server's names
}

// Server is a connected MCP server. It is safe for concurrent use.
type Server struct {
	config  Config
	offered []*sdk.Tool // set by connect
	info    Info        // set by connect

	mu      sync.Mutex // guards the following fields; held while a session is opened
	session *session   // nil if the next call must open one
	closed  bool
}

// Connect opens a session with a server and lists its tools. Errors name the
// server and include the end of a program's standard error.
func Connect(ctx context.Context, c Config) (*Server, error) {
	s := &Server{config: c}
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Server) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, connectTimeout, fmt.Errorf("no answer within %v", connectTimeout))
	defer cancel()
	sess, err := s.currentSession(ctx)
	if err == nil {
		err = s.listTools(ctx, sess)
	}
	if err != nil {
		err = fmt.Errorf("MCP server %s: %s", s.config.Name, s.sanitize(contextError(ctx, err)))
		return errors.Join(err, s.Close())
	}
	return nil
}

// contextError returns the text of the context's cause if ctx has ended,
// otherwise that of err.
func contextError(ctx context.Context, err error) string {
	if ctx.Err() != nil {
		return context.Cause(ctx).Error()
	}
	return err.Error()
}

// listTools requests the list of tools, page by page, and sets s.offered and
// s.info.
func (s *Server) listTools(ctx context.Context, sess *session) error {
	params := &sdk.ListToolsParams{}
	for range maxPages {
		page, err := sess.client.ListTools(ctx, params)
		if err != nil {
			return sess.explain(fmt.Errorf("list tools: %w", err))
		}
		for _, t := range page.Tools {
			if t != nil && s.isAllowed(t.Name) {
				s.offered = append(s.offered, t)
			}
		}
		if len(s.offered) > maxTools {
			return fmt.Errorf("the server has more than %d tools; name the ones to offer", maxTools)
		}
		if params.Cursor = page.NextCursor; params.Cursor == "" {
			return s.describe(sess)
		}
	}
	return fmt.Errorf("the list of tools has more than %d pages", maxPages)
}

func (s *Server) describe(sess *session) error {
	s.info = Info{Name: s.config.Name, Tools: []string{}}
	if r := sess.client.InitializeResult(); r != nil {
		s.info.Protocol = s.shortLine(r.ProtocolVersion)
		if r.ServerInfo != nil {
			s.info.Server, s.info.Version = s.shortLine(r.ServerInfo.Name), s.shortLine(r.ServerInfo.Version)
		}
	}
	for _, t := range s.offered {
		s.info.Tools = append(s.info.Tools, s.shortLine(t.Name))
	}
	for _, name := range s.config.AllowedTools {
		if !slices.ContainsFunc(s.offered, func(t *sdk.Tool) bool { return t.Name == name }) {
			return fmt.Errorf("the server has no tool %.80q", name)
		}
	}
	return nil
}

// Info returns the server's description from the first connection.
func (s *Server) Info() Info { return s.info }

// currentSession returns the open session, or opens one.
func (s *Server) currentSession(ctx context.Context) (_ *session, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("the connection is closed")
	}
	if s.session == nil {
		s.session, err = s.openSession(ctx)
	}
	return s.session, err
}

// closeSession closes a failed session; the next call opens a new one.
func (s *Server) closeSession(sess *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == sess {
		sess.close()
		s.session = nil
	}
}

// Close closes the session and ends the program. Pending calls return an error.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.session != nil {
		s.session.close()
		s.session = nil
	}
	return nil
}

func (s *Server) isAllowed(name string) bool {
	return len(s.config.AllowedTools) == 0 || slices.Contains(s.config.AllowedTools, name)
}
