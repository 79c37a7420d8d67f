package minitool

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/env/helper/minitool/filetools"
)

// Exit codes of mini-tool itself.
const (
	exitFailure = 1
	exitUsage   = 2
)

// IsToolName reports whether a program with these arguments was started as mini-tool.
func IsToolName(args []string) bool {
	return len(args) > 0 && args[0][strings.LastIndexByte(args[0], '/')+1:] == env.ToolProgram
}

// Main runs mini-tool with the arguments and standard streams of this process and
// returns the exit code.
func Main() int {
	args := os.Args[1:]
	if len(args) > 0 && slices.Contains(strings.Split(os.Getenv(helper.LocalVariable), ","), args[0]) {
		return filetools.Run(args[0], args[1:], filetools.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	}
	socket, token := os.Getenv(helper.SocketVariable), os.Getenv(helper.TokenVariable)
	if socket == "" || token == "" {
		return printError(exitFailure, "no tools are there for this command")
	}
	req := helper.ToolRequest{Token: token, Args: args}
	var err error
	if req.Dir, err = os.Getwd(); err != nil {
		req.Dir = "" // the directory was removed; the host rejects the request if it needs it
	}
	if slices.Contains(args, "-") {
		if req.Stdin, err = io.ReadAll(io.LimitReader(os.Stdin, env.MaxToolRequest+1)); err != nil {
			return printError(exitFailure, "standard input cannot be read: %v", err)
		}
	}
	body, err := req.Encode()
	if err != nil {
		return printError(exitUsage, "arguments and standard input together are more than %d KB; put what is long into a file and name that", env.MaxToolRequest>>10)
	}
	response, err := request(socket, body)
	if err != nil {
		return printError(exitFailure, "%v", err)
	}
	_, outErr := os.Stdout.Write(response.Stdout)
	_, errErr := os.Stderr.Write(response.Stderr)
	if err := errors.Join(outErr, errErr); err != nil && response.ExitCode == 0 {
		return printError(exitFailure, "the answer cannot be written: %v", err)
	}
	return response.ExitCode
}

func printError(code int, format string, args ...any) int {
	_, _ = fmt.Fprintf(os.Stderr, env.ToolProgram+": "+format+"\n", args...) // the error cannot be reported elsewhere
	return code
}

// request sends a request to the helper and waits for the response, without a timeout:
// the helper responds or closes the connection.
func request(socket string, body []byte) (helper.ToolResponse, error) {
	conn, err := connect(socket)
	if err != nil {
		return helper.ToolResponse{}, fmt.Errorf("nobody is there to ask: %w", err)
	}
	defer conn.Close() //nolint:errcheck // the response has been read
	if err := helper.WriteFrame(conn, helper.Frame{Kind: helper.KindToolRequest, Body: body}); err != nil {
		return helper.ToolResponse{}, fmt.Errorf("ask: %w", err)
	}
	f, err := helper.ReadFrame(bufio.NewReader(conn), helper.MaxToolResponseFrame)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return helper.ToolResponse{}, errors.New("there was no answer; the command that this belongs to may be over")
	case err != nil:
		return helper.ToolResponse{}, fmt.Errorf("wait for the answer: %w", err)
	case f.Kind != helper.KindToolResponse:
		return helper.ToolResponse{}, fmt.Errorf("%w: kind %q for an answer", helper.ErrFrame, f.Kind)
	}
	return helper.DecodeToolResponse(f.Body)
}

// connect dials an abstract Unix socket. The socket is blocking, which avoids the
// start of the runtime's poller.
func connect(name string) (*os.File, error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open socket: %w", err)
	}
	if err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: "@" + name}); err != nil {
		return nil, errors.Join(err, syscall.Close(fd))
	}
	return os.NewFile(uintptr(fd), "socket"), nil
}
