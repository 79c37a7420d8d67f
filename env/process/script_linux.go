package process

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

const (
	// argvScript is the size, in bytes, from which a script for a shell is passed in a
	// file instead of an argument. Linux allows 128 KiB per argument.
	argvScript = 100 << 10
	// maxArgument is the limit of Linux for an argument, without the final NUL.
	maxArgument = 128<<10 - 1
	// scriptFD is the descriptor from which the shell reads a longer script: the
	// highest descriptor that every shell can close by number.
	scriptFD = 9
)

// preparedScript is a script in the form in which it is passed to its interpreter.
type preparedScript struct {
	argv []string
	file *os.File // holds a long script; nil for a short one
	// socket and receiver are the ends of the socket with which the repository program
	// passes files to keep; nil for other commands.
	socket, receiver *os.File
}

// prepareScript puts a script into the arguments of shell. A long one is written to an
// anonymous file, which the shell sources; other interpreters take no long scripts. The
// first line of the file closes the descriptor, so that child processes do not inherit
// it.
func prepareScript(shell []string, script string) (preparedScript, error) {
	argv := append([]string{}, shell...)
	if isShell(shell[0]) && (strings.HasPrefix(script, "-") || strings.HasPrefix(script, "+")) {
		script = " " + script // otherwise the shell would parse it as an option
	}
	if len(script) < argvScript || (len(script) <= maxArgument && !isShell(shell[0])) {
		return preparedScript{argv: append(argv, script)}, nil
	}
	if !isShell(shell[0]) {
		return preparedScript{}, fmt.Errorf("%s takes scripts of at most %d bytes", shell[0], maxArgument)
	}
	f, err := anonymousFile()
	if err != nil {
		return preparedScript{}, fmt.Errorf("store script: %w", err)
	}
	fd := strconv.Itoa(scriptFD)
	_, err = f.WriteString("exec " + fd + "<&-; ")
	if err == nil {
		_, err = f.WriteString(script)
	}
	if err != nil {
		return preparedScript{}, fmt.Errorf("store script: %w", errors.Join(err, f.Close()))
	}
	return preparedScript{argv: append(argv, ". /proc/self/fd/"+fd), file: f}, nil
}

// close closes the anonymous file; the shell has its own descriptor.
func (p *preparedScript) close() {
	for _, f := range []*os.File{p.file, p.socket, p.receiver} {
		if f != nil {
			f.Close() //nolint:errcheck // it was written completely, or the command failed
		}
	}
}

// takeReceiver returns the receiver, which close then leaves open.
func (p *preparedScript) takeReceiver() *os.File {
	receiver := p.receiver
	p.receiver = nil
	return receiver
}

// anonymousFile creates a file without a name: in memory, so that it works without a
// writable directory, or else in the temporary directory.
func anonymousFile() (*os.File, error) {
	const cloexec = 1
	// Package syscall, which is frozen, lacks the number of memfd_create.
	call := map[string]uintptr{"amd64": 319, "arm64": 279}[runtime.GOARCH]
	if call != 0 {
		name, err := syscall.BytePtrFromString("script")
		if err != nil {
			return nil, err
		}
		fd, _, errno := syscall.Syscall(call, uintptr(unsafe.Pointer(name)), cloexec, 0) //nolint:gosec // memfd_create takes the address of its name
		if errno == 0 {
			return os.NewFile(fd, "script"), nil
		}
	}
	f, err := os.CreateTemp("", "script-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
