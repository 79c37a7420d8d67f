//go:build full

// Package browsertest runs tests of web pages in a real Chromium.
//
// A test binary starts one Chromium, and each test opens a tab of its own in it:
//
//	var chromium browsertest.Browser
//
//	func TestMain(m *testing.M) { os.Exit(chromium.Run(m)) }
//
//	func TestRunPage(t *testing.T) {
//		tab := chromium.Tab(t)
//		tab.Open(server.URL + "/r/run/") // of a server that runs longer than the tab
//		tab.Press("j")
//		tab.Wait(`document.activeElement.id === "i1"`)
//	}
//
// A tab records what a page must not do: requests to other origins, errors and
// warnings of the console, exceptions, dialogs, violations of the content security
// policy, and windows. At the end of a test each of these fails it, unless
// the test took them with Tab.Problems.
//
// Tests with this package have the build tag full; make test-full runs them.
// Without Chromium they are skipped, and fail if MINI_BROWSER is "required".
package browsertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"go.uber.org/goleak"
)

// Browser is the Chromium of a test binary. Its zero value is ready; Chromium starts
// with the first tab.
type Browser struct {
	once   sync.Once
	err    error
	folder string          // temporary files and the home folder of Chromium
	ctx    context.Context // of chromedp; a parent of those of the tabs
	stop   context.CancelFunc
}

var errNoChromium = errors.New("Chromium is missing; type: make setup-browser") //nolint:staticcheck // a name

// Run runs the tests and ends Chromium. It returns the exit code, which is not 0 if
// Chromium left processes or files, or the tests goroutines.
func (b *Browser) Run(m *testing.M) int {
	code := m.Run()
	if err := b.close(); err != nil {
		fmt.Fprintln(os.Stderr, "browsertest:", err)
		code = max(code, 1)
	}
	return code
}

// start starts Chromium. Names are not resolved, so that a request to another
// machine fails, wherever the tests run.
func (b *Browser) start() error {
	program, err := find()
	if err != nil {
		return err
	}
	if b.folder, err = os.MkdirTemp("", "mini-browser-"); err != nil {
		return err
	}
	profile := filepath.Join(b.folder, "profile")
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(program),
		chromedp.UserDataDir(profile),
		chromedp.Env("HOME="+b.folder, "TMPDIR="+b.folder, "XDG_CONFIG_HOME="+b.folder, "XDG_CACHE_HOME="+b.folder),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
		chromedp.Flag("disable-gpu", true),
		chromedp.WSURLReadTimeout(2*time.Minute),
	)
	allocator, stopAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator, chromedp.WithErrorf(func(string, ...any) {}))
	b.ctx, b.stop = ctx, func() { cancel(); stopAllocator() }
	if err := chromedp.Do(ctx); err != nil {
		return fmt.Errorf("start %s: %w", program, err)
	}
	return nil
}

// find returns the path of Chromium.
func find() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errNoChromium
}

// close ends Chromium and removes its files. An error names what was left.
func (b *Browser) close() error {
	if b.folder == "" {
		return nil
	}
	var failures []error
	if b.ctx != nil {
		ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
		failures = append(failures, chromedp.Cancel(ctx))
		cancel()
		b.stop()
	}
	if left := b.waitProcesses(time.Minute); len(left) > 0 {
		failures = append(failures, fmt.Errorf("processes of Chromium are left: %s", strings.Join(left, ", ")))
	}
	failures = append(failures, os.RemoveAll(b.folder), goleak.Find())
	return errors.Join(failures...)
}

// waitProcesses waits until no process of Chromium is left, and returns those that
// are left in the end.
func (b *Browser) waitProcesses(limit time.Duration) []string {
	for end := time.Now().Add(limit); ; time.Sleep(20 * time.Millisecond) {
		left := b.processes()
		if len(left) == 0 || time.Now().After(end) {
			return left
		}
	}
}

// processes returns the processes of Chromium. Each has the folder in its environment
// or, where Chromium writes over that, in its command line.
func (b *Browser) processes() (found []string) {
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		environ, _ := os.ReadFile(filepath.Join(folder, "environ")) // missing if the process has just ended
		command, _ := os.ReadFile(filepath.Join(folder, "cmdline"))
		if bytes.Contains(environ, []byte("TMPDIR="+b.folder+"\x00")) || bytes.Contains(command, []byte("="+b.folder+"/")) {
			found = append(found, filepath.Base(folder))
		}
	}
	return found
}
