// Package mcp makes tools of those that servers of the Model Context Protocol
// have: programs on this machine that speak it on their standard streams, or URLs
// (streamable HTTP).
//
// A server is connected to once, and listed; all attempts of this mini share it. A
// tool is called as "mini-tool NAME --key VALUE ...", with the keys of its input
// schema, or with a whole object as "--json OBJECT" or, on the standard input, "-".
// Mistakes are found here, before the server is asked.
//
// Servers are strangers: what they say is bounded and taken for text. One that
// dies, hangs or talks nonsense is an answer to who asked, and is connected to anew
// by the next call; no call is made twice.
//
//	s, err := mcp.Connect(ctx, mcp.Config{Name: "issues", Command: []string{"issues-mcp"}})
//	defer s.Close()
//	list := mcp.Tools(taken, s)
//
// Only the command line imports it.
package mcp
