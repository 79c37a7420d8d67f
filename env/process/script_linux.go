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
	// argvScript is the longest script that travels as an argument. Linux
	// takes 128 KiB per argument.
	argvScript = 100 << 10
	// maxArgument is that limit, without the final NUL.
	maxArgument = 128<<10 - 1
	// scriptFD is where a longer one waits for the shell; the highest
	// descriptor that every shell can close by name.
	scriptFD = 9
)

// prepared is how a script reaches its interpreter.
type prepared struct {
	argv []string
	file *os.File // holds a long script; nil for a short one
}

// prepare puts a script into the arguments of shell. A long one goes into an
// anonymous file that the shell sources; its first line closes the descriptor,
// so that what the script starts does not inherit it.
func prepare(shell []string, script string) (prepared, error) {
	argv := append([]string{}, shell...)
	if readsScripts(shell[0]) && (strings.HasPrefix(script, "-") || strings.HasPrefix(script, "+")) {
		script = " " + script // a shell would take it for one more option
	}
	if len(script) < argvScript || (len(script) <= maxArgument && !readsScripts(shell[0])) {
		return prepared{argv: append(argv, script)}, nil
	}
	if !readsScripts(shell[0]) {
		return prepared{}, fmt.Errorf("%s takes scripts of at most %d bytes", shell[0], maxArgument)
	}
	f, err := anonymous()
	if err != nil {
		return prepared{}, fmt.Errorf("store script: %w", err)
	}
	fd := strconv.Itoa(scriptFD)
	_, err = f.WriteString("exec " + fd + "<&-; ")
	if err == nil {
		_, err = f.WriteString(script)
	}
	if err != nil {
		return prepared{}, fmt.Errorf("store script: %w", errors.Join(err, f.Close()))
	}
	return prepared{argv: append(argv, ". /proc/self/fd/"+fd), file: f}, nil
}

// close gives up the anonymous file; the shell has its own hold on it.
func (p prepared) close() {
	if p.file != nil {
		p.file.Close() //nolint:errcheck // it was written whole, or the command failed
	}
}

// anonymous makes a file without a name: in memory, so that it works where no
// directory can be written, or else in the temporary directory.
func anonymous() (*os.File, error) {
	const cloexec = 1
	// The frozen package syscall lacks the number.
	call := map[string]uintptr{"amd64": 319, "arm64": 279}[runtime.GOARCH]
	if call != 0 {
		name, err := syscall.BytePtrFromString("script")
		if err != nil {
			return nil, err
		}
		fd, _, errno := syscall.Syscall(call, uintptr(unsafe.Pointer(name)), cloexec, 0) //nolint:gosec // memfd_create wants the address of its name
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
