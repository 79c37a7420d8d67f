package local

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ProtectMemory prevents other processes of this user, such as commands of the local
// environment, from reading the memory and the environment of this process: both
// contain keys. As a side effect, a crash leaves no core file.
func ProtectMemory() error {
	// Ignore the error: without /proc, other processes cannot read the environment
	// either.
	_ = ClearProcEnviron(IsSecret)
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("close memory to other processes: %w", err)
	}
	return nil
}

// ClearProcEnviron overwrites the values of the variables for which isSecret returns true
// in the memory that /proc/PID/environ shows. Root can read that file even if the process
// is not dumpable. os.Getenv and child processes use Go's copy of the variables, which
// does not change.
func ClearProcEnviron(isSecret func(name string) bool) error {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return err
	}
	// Field numbers of proc(5). The first two fields are cut off, because the second
	// one, in parentheses, may contain spaces.
	const firstField, envStart, envEnd = 3, 50, 51
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) <= envEnd-firstField {
		return fmt.Errorf("read /proc/self/stat: %d fields", len(fields))
	}
	start, err := strconv.ParseInt(fields[envStart-firstField], 10, 64)
	if err != nil {
		return err
	}
	end, err := strconv.ParseInt(fields[envEnd-firstField], 10, 64)
	if err != nil {
		return err
	}
	mem, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer mem.Close() //nolint:errcheck // every write is checked
	block := make([]byte, max(0, end-start))
	if _, err := mem.ReadAt(block, start); err != nil {
		return err
	}
	offset := start
	for entry := range bytes.SplitSeq(block, []byte{0}) {
		name, value, _ := bytes.Cut(entry, []byte{'='})
		if len(value) > 0 && isSecret(string(name)) {
			if _, err := mem.WriteAt(make([]byte, len(value)), offset+int64(len(name))+1); err != nil {
				return err
			}
		}
		offset += int64(len(entry)) + 1
	}
	return nil
}
