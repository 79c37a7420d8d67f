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
	"github.com/minibench/mini/env/helper/minitool/files"
)

// Exit codes of this program's own.
const (
	failed  = 1
	misused = 2
)

// Called says that a program was started by the name of mini-tool.
func Called(args []string) bool {
	return len(args) > 0 && args[0][strings.LastIndexByte(args[0], '/')+1:] == env.ToolProgram
}

// Main does what the arguments of this process ask for, on its standard streams,
// and returns the exit code.
func Main() int {
	args := os.Args[1:]
	if len(args) > 0 && slices.Contains(strings.Split(os.Getenv(helper.LocalVariable), ","), args[0]) {
		return files.Run(args[0], args[1:], files.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	}
	socket, token := os.Getenv(helper.SocketVariable), os.Getenv(helper.TokenVariable)
	if socket == "" || token == "" {
		return complain(failed, "no tools are there for this command")
	}
	ask := helper.Ask{Token: token, Args: args}
	var err error
	if ask.Dir, err = os.Getwd(); err != nil {
		ask.Dir = "" // the folder was removed; the host says what it needs it for
	}
	if slices.Contains(args, "-") {
		if ask.Input, err = io.ReadAll(io.LimitReader(os.Stdin, env.MaxToolRequest+1)); err != nil {
			return complain(failed, "standard input cannot be read: %v", err)
		}
	}
	body, err := ask.Encode()
	if err != nil {
		return complain(misused, "arguments and standard input together are more than %d KB; put what is long into a file and name that", env.MaxToolRequest>>10)
	}
	answer, err := request(socket, body)
	if err != nil {
		return complain(failed, "%v", err)
	}
	_, outErr := os.Stdout.Write(answer.Output)
	_, errErr := os.Stderr.Write(answer.Errors)
	if err := errors.Join(outErr, errErr); err != nil && answer.ExitCode == 0 {
		return complain(failed, "the answer cannot be written: %v", err)
	}
	return answer.ExitCode
}

func complain(code int, format string, args ...any) int {
	_, _ = fmt.Fprintf(os.Stderr, env.ToolProgram+": "+format+"\n", args...) // there is nobody else to tell
	return code
}

// request sends an Ask to the helper and waits for what comes back: as long as it
// takes, since the helper answers or closes.
func request(socket string, ask []byte) (helper.Answer, error) {
	conn, err := connect(socket)
	if err != nil {
		return helper.Answer{}, fmt.Errorf("nobody is there to ask: %w", err)
	}
	defer conn.Close() //nolint:errcheck // all was said
	if err := helper.WriteFrame(conn, helper.Frame{Kind: helper.KindAsk, Body: ask}); err != nil {
		return helper.Answer{}, fmt.Errorf("ask: %w", err)
	}
	f, err := helper.ReadFrame(bufio.NewReader(conn), helper.MaxAnswer)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return helper.Answer{}, errors.New("there was no answer; the command that this belongs to may be over")
	case err != nil:
		return helper.Answer{}, fmt.Errorf("wait for the answer: %w", err)
	case f.Kind != helper.KindAnswer:
		return helper.Answer{}, fmt.Errorf("%w: kind %q for an answer", helper.ErrFrame, f.Kind)
	}
	return helper.DecodeAnswer(f.Body)
}

// connect dials an abstract Unix socket. It blocks, since there is nothing else
// to do: that spares the runtime its poller.
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
