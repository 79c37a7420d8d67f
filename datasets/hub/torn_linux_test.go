package hub_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/minibench/mini/datasets/hub"
)

// TestDiskFull fills a small file system in a mount namespace of a child process. Fetches
// fail while it is full; after it is enlarged, the next fetch succeeds.
func TestDiskFull(t *testing.T) {
	s := server(t)
	cmd := startChild(t, "disk", "HUB_TEST_URL="+s.URL, "HUB_TEST_DIR="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	switch {
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EINVAL), strings.HasPrefix(string(out), "no tmpfs"):
		t.Skipf("no file system can be mounted here: %v %s", err, out)
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	resumed := 0
	for _, r := range s.Downloads(".parquet") {
		if r.Range != "" {
			resumed++
		}
	}
	if !strings.Contains(string(out), fmt.Sprintf("full %d of %d", rounds, rounds)) || resumed == 0 {
		t.Errorf("%s, %d files resumed: want a full disk in every round, and resumed downloads", out, resumed)
	}
}

// diskChild repeatedly mounts a file system that is too small, fetches until it is full,
// enlarges it and fetches again.
func diskChild() int {
	dir, url := os.Getenv("HUB_TEST_DIR"), os.Getenv("HUB_TEST_URL")
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		fmt.Printf("no tmpfs: %v", err)
		return 1
	}
	full := 0
	for round := range rounds {
		kilobytes := 8 + rand.IntN(480) // the files have 490 KB
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dk", kilobytes)); err != nil {
			fmt.Printf("no tmpfs: %v", err)
			return 1
		}
		if err := fill(dir, url, &full); err != nil {
			fmt.Printf("round %d, %d KB: %v\n", round, kilobytes, err)
			return 1
		}
		if err := syscall.Unmount(dir, 0); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	fmt.Printf("full %d of %d\n", full, rounds)
	return 0
}

func fill(dir, url string, full *int) error {
	h, err := hub.New(hub.Config{Endpoint: url, Dir: dir})
	if err != nil {
		return err
	}
	defer h.Close()
	_, err = h.Fetch(context.Background(), hub.Ref{Repo: repo})
	e, ok := errors.AsType[*hub.Error](err)
	if !ok || !errors.Is(err, hub.ErrDiskFull) || !strings.Contains(e.Text, dir) {
		return fmt.Errorf("want ErrDiskFull with the folder: %w", err)
	}
	if _, err := h.Fetch(context.Background(), hub.Ref{Repo: repo}); !errors.Is(err, hub.ErrDiskFull) {
		return fmt.Errorf("want ErrDiskFull again: %w", err)
	}
	*full++
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=4m"); err != nil {
		return err
	}
	snapshot, err := h.Fetch(context.Background(), hub.Ref{Repo: repo})
	if err != nil {
		return err
	}
	return compare(snapshot, files())
}
