package helper

import (
	"encoding/binary"
	"fmt"

	"github.com/minibench/mini/env"
)

// Environment variables of commands that may call tools (see env.Tools).
const (
	// SocketVariable holds the name of the helper's abstract Unix socket, without the
	// leading NUL.
	SocketVariable = "MINI_TOOL_SOCKET"
	// TokenVariable holds the token of the command.
	TokenVariable = "MINI_TOOL_TOKEN" //nolint:gosec // the name of a variable
	// LocalVariable holds the names of the tools that mini-tool runs itself, separated
	// by commas.
	LocalVariable = "MINI_TOOL_LOCAL"
)

// Limits of tool requests and responses, in bytes.
const (
	// MaxToken is the maximum size of the token of a request.
	MaxToken = 128
	// MaxToolRequestFrame is the maximum body size of a tool request frame.
	MaxToolRequestFrame = env.MaxToolRequest + MaxToken + 5*wordSize
	// MaxToolResponseFrame is the maximum body size of a tool response frame.
	MaxToolResponseFrame = env.MaxToolResponse + 3*wordSize
)

// wordSize is the size of a number in a body, in bytes.
const wordSize = 4

// ToolRequest is the request of mini-tool to the helper. It is sent as a frame of
// KindToolRequest without an id, the only frame that mini-tool sends on the connection.
// The helper responds with one frame of KindToolResponse and closes the connection. The
// helper forwards the request to the client without the token.
type ToolRequest struct {
	Token string
	Args  []string
	Dir   string
	Stdin []byte
}

// Encode returns the body of a tool request frame: token, directory, number of
// arguments, each argument, then standard input. Each text except the last follows its
// length. Numbers are big-endian uint32. The error wraps ErrFrame if the token exceeds
// MaxToken, or the rest exceeds env.MaxToolRequest, where each argument counts four
// bytes more than its length.
func (r ToolRequest) Encode() ([]byte, error) {
	size := len(r.Dir) + len(r.Stdin)
	for _, arg := range r.Args {
		size += wordSize + len(arg)
	}
	if len(r.Token) > MaxToken || size > env.MaxToolRequest {
		return nil, fmt.Errorf("%w: request of %d bytes, allowed %d", ErrFrame, size, env.MaxToolRequest)
	}
	b := make([]byte, 0, 3*wordSize+len(r.Token)+size)
	b = appendText(b, r.Token)
	b = appendText(b, r.Dir)
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.Args)))
	for _, arg := range r.Args {
		b = appendText(b, arg)
	}
	return append(b, r.Stdin...), nil
}

// DecodeToolRequest is the inverse of Encode. Its errors wrap ErrFrame.
func DecodeToolRequest(body []byte) (ToolRequest, error) {
	if len(body) > MaxToolRequestFrame {
		return ToolRequest{}, fmt.Errorf("%w: request of %d bytes, allowed %d", ErrFrame, len(body), MaxToolRequestFrame)
	}
	r := bodyReader{rest: body}
	req := ToolRequest{Token: string(r.text()), Dir: string(r.text())}
	count := r.number()
	if count > uint32(len(r.rest)/wordSize) {
		return ToolRequest{}, fmt.Errorf("%w: %d arguments in %d bytes", ErrFrame, count, len(r.rest))
	}
	if count > 0 {
		req.Args = make([]string, count)
	}
	for i := range req.Args {
		req.Args[i] = string(r.text())
	}
	if r.truncated {
		return ToolRequest{}, fmt.Errorf("%w: truncated request", ErrFrame)
	}
	if len(r.rest) > 0 {
		req.Stdin = r.rest
	}
	if _, err := req.Encode(); err != nil { // checks the limits of the fields
		return ToolRequest{}, err
	}
	return req, nil
}

// ToolResponse is the response to a ToolRequest (see env.ToolResponse).
type ToolResponse struct {
	Stdout   []byte
	Stderr   []byte
	ExitCode int
}

// Encode returns the body of a tool response frame: exit code (int32), length of
// Stdout, Stdout, Stderr. The error wraps ErrFrame if the response exceeds
// env.MaxToolResponse.
func (r ToolResponse) Encode() ([]byte, error) {
	if len(r.Stdout)+len(r.Stderr) > env.MaxToolResponse {
		return nil, fmt.Errorf("%w: answer of %d bytes, allowed %d", ErrFrame, len(r.Stdout)+len(r.Stderr), env.MaxToolResponse)
	}
	b := make([]byte, 0, 2*wordSize+len(r.Stdout)+len(r.Stderr))
	b = binary.BigEndian.AppendUint32(b, uint32(int32(r.ExitCode)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.Stdout)))
	b = append(b, r.Stdout...)
	return append(b, r.Stderr...), nil
}

// DecodeToolResponse is the inverse of Encode. Its errors wrap ErrFrame.
func DecodeToolResponse(body []byte) (ToolResponse, error) {
	if len(body) > MaxToolResponseFrame {
		return ToolResponse{}, fmt.Errorf("%w: answer of %d bytes, allowed %d", ErrFrame, len(body), MaxToolResponseFrame)
	}
	r := bodyReader{rest: body}
	resp := ToolResponse{ExitCode: int(int32(r.number()))}
	resp.Stdout = r.text()
	if r.truncated {
		return ToolResponse{}, fmt.Errorf("%w: truncated answer", ErrFrame)
	}
	resp.Stderr = r.rest
	if len(resp.Stdout)+len(resp.Stderr) > env.MaxToolResponse {
		return ToolResponse{}, fmt.Errorf("%w: answer of %d bytes, allowed %d", ErrFrame, len(resp.Stdout)+len(resp.Stderr), env.MaxToolResponse)
	}
	return resp, nil
}

func appendText(b []byte, text string) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(text)))
	return append(b, text...)
}

// bodyReader parses the fields of a body. It refers to the body without copying it.
type bodyReader struct {
	rest      []byte
	truncated bool // a field exceeds the body
}

func (r *bodyReader) number() uint32 {
	if len(r.rest) < wordSize {
		r.rest, r.truncated = nil, true
		return 0
	}
	n := binary.BigEndian.Uint32(r.rest)
	r.rest = r.rest[wordSize:]
	return n
}

func (r *bodyReader) text() []byte {
	n := r.number()
	if uint64(n) > uint64(len(r.rest)) {
		r.rest, r.truncated = nil, true
		return nil
	}
	text := r.rest[:n:n]
	r.rest = r.rest[n:]
	return text
}

// WithRequestNumber prepends the number of a request to a body. Between helper and
// client, the frames of tool requests, responses and cancellations have such bodies,
// and the id of the command.
func WithRequestNumber(n uint32, body []byte) []byte {
	b := make([]byte, 0, wordSize+len(body))
	b = binary.BigEndian.AppendUint32(b, n)
	return append(b, body...)
}

// CutRequestNumber is the inverse of WithRequestNumber.
func CutRequestNumber(b []byte) (n uint32, body []byte, err error) {
	if len(b) < wordSize {
		return 0, nil, fmt.Errorf("%w: a request without a number", ErrFrame)
	}
	return binary.BigEndian.Uint32(b), b[wordSize:], nil
}
