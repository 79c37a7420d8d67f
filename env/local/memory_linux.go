package local

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// CloseMemory keeps other processes of this user, among them the commands of the
// local environment, from reading the memory and the environment of this one: both
// have keys. It also means that a crash leaves no core file.
func CloseMemory() error {
	// Best effort: where /proc is missing there is nothing to read either.
	_ = ClearEnviron(IsSecret)
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("close memory to other processes: %w", err)
	}
	return nil
}

// ClearEnviron overwrites the values of variables in the memory that
// /proc/PID/environ shows. The kernel lets root read it whether the process is
// dumpable or not. os.Getenv and children have Go's copy, which stays.
func ClearEnviron(secret func(name string) bool) error {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return err
	}
	// The fields are numbered in proc(5); the second is in parentheses.
	const third, envStart, envEnd = 3, 50, 51
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) <= envEnd-third {
		return fmt.Errorf("read /proc/self/stat: %d fields", len(fields))
	}
	start, err := strconv.ParseInt(fields[envStart-third], 10, 64)
	if err != nil {
		return err
	}
	end, err := strconv.ParseInt(fields[envEnd-third], 10, 64)
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
	at := start
	for entry := range bytes.SplitSeq(block, []byte{0}) {
		name, value, _ := bytes.Cut(entry, []byte{'='})
		if len(value) > 0 && secret(string(name)) {
			if _, err := mem.WriteAt(make([]byte, len(value)), at+int64(len(name))+1); err != nil {
				return err
			}
		}
		at += int64(len(entry)) + 1
	}
	return nil
}
