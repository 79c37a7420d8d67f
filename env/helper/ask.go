package helper

import (
	"encoding/binary"
	"fmt"

	"github.com/minibench/mini/env"
)

// The variables that a command finds when it may ask (see env.Tools), and no
// other command does.
const (
	// SocketVariable holds the name of the helper's abstract Unix socket, without
	// the NUL that begins it.
	SocketVariable = "MINI_TOOL_SOCKET"
	// TokenVariable holds the token of the command.
	TokenVariable = "MINI_TOOL_TOKEN" //nolint:gosec // a name
	// LocalVariable names the tools that mini-tool has itself, with commas between
	// them.
	LocalVariable = "MINI_TOOL_LOCAL"
)

// Bounds of requests and answers, in bytes of the body of their frames.
const (
	// MaxToken bounds the token of a request.
	MaxToken = 128
	// MaxAsk bounds an Ask frame.
	MaxAsk = env.MaxToolRequest + MaxToken + 5*wordSize
	// MaxAnswer bounds an Answer frame.
	MaxAnswer = env.MaxToolAnswer + 3*wordSize
)

// wordSize is that of a number in a body.
const wordSize = 4

// Ask is what mini-tool asks of the helper, in a frame of KindAsk without an
// id, as the only frame it sends; the helper answers with one of KindAnswer, and
// closes. What it asks of the client goes on without the token.
type Ask struct {
	Token string
	Args  []string
	Dir   string
	Input []byte
}

// Encode makes the body of an Ask frame: token, folder, number of arguments, each
// argument, each text after its length; then the input. Numbers are uint32 big
// endian. The error wraps ErrFrame: what env.MaxToolRequest bounds is too large,
// where an argument counts four bytes more than it has.
func (a Ask) Encode() ([]byte, error) {
	size := len(a.Dir) + len(a.Input)
	for _, arg := range a.Args {
		size += wordSize + len(arg)
	}
	if len(a.Token) > MaxToken || size > env.MaxToolRequest {
		return nil, fmt.Errorf("%w: request of %d bytes, allowed %d", ErrFrame, size, env.MaxToolRequest)
	}
	b := make([]byte, 0, 3*wordSize+len(a.Token)+size)
	b = appendText(b, a.Token)
	b = appendText(b, a.Dir)
	b = binary.BigEndian.AppendUint32(b, uint32(len(a.Args)))
	for _, arg := range a.Args {
		b = appendText(b, arg)
	}
	return append(b, a.Input...), nil
}

// DecodeAsk is the inverse of Encode. Its errors wrap ErrFrame.
func DecodeAsk(body []byte) (Ask, error) {
	if len(body) > MaxAsk {
		return Ask{}, fmt.Errorf("%w: request of %d bytes, allowed %d", ErrFrame, len(body), MaxAsk)
	}
	w := words{rest: body}
	a := Ask{Token: string(w.text()), Dir: string(w.text())}
	count := w.number()
	if count > uint32(len(w.rest)/wordSize) {
		return Ask{}, fmt.Errorf("%w: %d arguments in %d bytes", ErrFrame, count, len(w.rest))
	}
	if count > 0 {
		a.Args = make([]string, count)
	}
	for i := range a.Args {
		a.Args[i] = string(w.text())
	}
	if w.short {
		return Ask{}, fmt.Errorf("%w: a request that ends too soon", ErrFrame)
	}
	if len(w.rest) > 0 {
		a.Input = w.rest
	}
	if _, err := a.Encode(); err != nil { // the bounds of its parts
		return Ask{}, err
	}
	return a, nil
}

// Answer is what comes back, as env.ToolAnswer has it.
type Answer struct {
	Output   []byte
	Errors   []byte
	ExitCode int
}

// Encode makes the body of an Answer frame: exit code (int32), length of the
// output, output, errors. The error wraps ErrFrame: output and errors exceed
// env.MaxToolAnswer.
func (a Answer) Encode() ([]byte, error) {
	if len(a.Output)+len(a.Errors) > env.MaxToolAnswer {
		return nil, fmt.Errorf("%w: answer of %d bytes, allowed %d", ErrFrame, len(a.Output)+len(a.Errors), env.MaxToolAnswer)
	}
	b := make([]byte, 0, 2*wordSize+len(a.Output)+len(a.Errors))
	b = binary.BigEndian.AppendUint32(b, uint32(int32(a.ExitCode))) //nolint:gosec // exit codes are small
	b = binary.BigEndian.AppendUint32(b, uint32(len(a.Output)))
	b = append(b, a.Output...)
	return append(b, a.Errors...), nil
}

// DecodeAnswer is the inverse of Encode. Its errors wrap ErrFrame.
func DecodeAnswer(body []byte) (Answer, error) {
	if len(body) > MaxAnswer {
		return Answer{}, fmt.Errorf("%w: answer of %d bytes, allowed %d", ErrFrame, len(body), MaxAnswer)
	}
	w := words{rest: body}
	a := Answer{ExitCode: int(int32(w.number()))} //nolint:gosec // as it was encoded
	a.Output = w.text()
	if w.short {
		return Answer{}, fmt.Errorf("%w: an answer that ends too soon", ErrFrame)
	}
	a.Errors = w.rest
	if len(a.Output)+len(a.Errors) > env.MaxToolAnswer {
		return Answer{}, fmt.Errorf("%w: answer of %d bytes, allowed %d", ErrFrame, len(a.Output)+len(a.Errors), env.MaxToolAnswer)
	}
	return a, nil
}

func appendText(b []byte, text string) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(text)))
	return append(b, text...)
}

// words takes a body apart, and holds nothing but it.
type words struct {
	rest  []byte
	short bool // it ended too soon
}

func (w *words) number() uint32 {
	if len(w.rest) < wordSize {
		w.rest, w.short = nil, true
		return 0
	}
	n := binary.BigEndian.Uint32(w.rest)
	w.rest = w.rest[wordSize:]
	return n
}

func (w *words) text() []byte {
	n := w.number()
	if uint64(n) > uint64(len(w.rest)) {
		w.rest, w.short = nil, true
		return nil
	}
	text := w.rest[:n:n]
	w.rest = w.rest[n:]
	return text
}

// WithNumber puts the number of a request before a body: so requests, answers and
// news of them travel between helper and client, in frames with the id of the
// command.
func WithNumber(n uint32, body []byte) []byte {
	b := make([]byte, 0, wordSize+len(body))
	b = binary.BigEndian.AppendUint32(b, n)
	return append(b, body...)
}

// CutNumber is the inverse of WithNumber.
func CutNumber(b []byte) (n uint32, body []byte, err error) {
	if len(b) < wordSize {
		return 0, nil, fmt.Errorf("%w: a request without a number", ErrFrame)
	}
	return binary.BigEndian.Uint32(b), b[wordSize:], nil
}
