package process

import (
	"os"
	"strconv"
	"sync"
	"syscall"

	"github.com/minibench/mini/env"
)

// maxKept bounds the number of kept files.
const maxKept = 250

// keptFiles are files that the repository program passed to this process. Its later runs
// inherit them, so that it can still read what a command has removed. They are closed with
// the runner.
type keptFiles struct {
	mu    sync.Mutex
	files []*os.File
}

// prepare returns how the repository program is started: with the request as its standard
// input, and a socket after standard error.
func (k *keptFiles) prepare(request string) (p preparedScript, err error) {
	k.mu.Lock()
	p.argv = []string{env.RepositoryProgram, strconv.Itoa(len(k.files))}
	k.mu.Unlock()
	if p.file, err = anonymousFile(); err != nil {
		return p, err
	}
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		p.close()
		return p, err
	}
	p.socket, p.receiver = os.NewFile(uintptr(pair[0]), "socket"), os.NewFile(uintptr(pair[1]), "socket")
	_, err = p.file.WriteString(request)
	if err == nil {
		_, err = p.file.Seek(0, 0)
	}
	if err != nil {
		p.close()
	}
	return p, err
}

// inherited returns the descriptors after standard error.
func (k *keptFiles) inherited(socket *os.File) []uintptr {
	k.mu.Lock()
	defer k.mu.Unlock()
	fds := []uintptr{socket.Fd()}
	for _, f := range k.files {
		fds = append(fds, f.Fd())
	}
	return fds
}

// receive replaces the kept files by those that the program passed, if it passed any. It
// closes the socket. The program has ended.
func (k *keptFiles) receive(socket *os.File) {
	if socket == nil {
		return
	}
	defer socket.Close() //nolint:errcheck // nothing was written
	rights := make([]byte, syscall.CmsgSpace(4*maxKept))
	_, n, _, _, err := syscall.Recvmsg(int(socket.Fd()), make([]byte, 1), rights, syscall.MSG_DONTWAIT|syscall.MSG_CMSG_CLOEXEC)
	if err != nil {
		return
	}
	messages, err := syscall.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) == 0 {
		return
	}
	k.close()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, m := range messages {
		fds, err := syscall.ParseUnixRights(&m)
		if err != nil {
			continue
		}
		for _, fd := range fds {
			k.files = append(k.files, os.NewFile(uintptr(fd), "kept"))
		}
	}
}

func (k *keptFiles) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, f := range k.files {
		f.Close() //nolint:errcheck // nothing was written
	}
	k.files = nil
}
