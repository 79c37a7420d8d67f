// Package mcp offers the tools of Model Context Protocol servers: programs on
// this machine that use their standard streams, or URLs (streamable HTTP).
//
// Connect opens one session with a server, which all attempts share, and lists
// the server's tools. A command calls a tool as "mini-tool NAME --key VALUE
// ...", with the keys of the tool's input schema. It can also pass all
// arguments as one object: "--json OBJECT", or "-" for standard input.
// Arguments are validated before the server is called.
//
// Servers are not trusted: their texts are bounded and sanitized. If a server
// dies, hangs or sends invalid messages, the call fails and the next call opens
// a new session. A call is never repeated.
//
//	s, err := mcp.Connect(ctx, mcp.Config{Name: "issues", Command: []string{"issues-mcp"}})
//	defer s.Close()
//	list := mcp.Tools(isTaken, s)
//
// Only package runner/setup imports this package.
package mcp
