package report_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/report"
	"github.com/minibench/mini/cmd/mini/internal/web/webtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// view starts mini view with arguments and returns the address that it prints and a function that
// ends it.
func view(t *testing.T, args ...string) (address string, stop func()) {
	t.Helper()
	r, w := io.Pipe()
	cmd := report.NewView(app.New(t.Context(), cmdutil.Streams{Out: io.Discard, Err: w}))
	cmd.SetArgs(append(args, "--port", "0"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		err := cmd.ExecuteContext(ctx)
		_ = w.CloseWithError(errors.Join(io.EOF, err)) // a pipe does not fail
		done <- err
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	address = regexp.MustCompile(`http://\S+`).FindString(line)
	return address, func() {
		cancel()
		http.DefaultClient.CloseIdleConnections()
		if err := <-done; err != nil {
			t.Errorf("mini view ends with %v", err)
		}
	}
}

// get requests a page as a browser does that opens it first.
func get(t *testing.T, address string) (code int, body string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := browser.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// mini view serves the runs of a folder until it is stopped, at the address that it prints.
func TestView(t *testing.T) {
	dir := t.TempDir()
	webtest.BigRun(t, filepath.Join(dir, "first"), 2, 1, 3)
	webtest.BigRun(t, filepath.Join(dir, "second"), 2, 1, 3)
	address, stop := view(t, dir)
	defer stop()
	for page, want := range map[string]string{"": "Compare the chosen runs", "r/second/": "second", "compare": "Compare 2 runs", "r/first/i/" + webtest.BigID(0): webtest.BigID(0)} {
		own := strings.Replace(address, "/?", "/"+page+"?", 1)
		if code, body := get(t, own); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d, without %q", own, code, want)
		}
	}
}

// The address of -i and --step is that of the step.
func TestViewStep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	webtest.BigRun(t, dir, 2, 1, 3)
	address, stop := view(t, dir, "-i", webtest.BigID(1), "--step", "2")
	defer stop()
	if code, body := get(t, address); code != http.StatusOK || !strings.Contains(body, `id="s2"`) || !strings.HasSuffix(address, "#s2") {
		t.Errorf("%s: %d", address, code)
	}
}

// A session opens at its only attempt, several sessions at their list. -i takes a part of the name.
func TestViewSessions(t *testing.T) {
	dir := t.TempDir()
	sessions := filepath.Join(dir, "state")
	for steps, name := range []string{"20261130-070809.123", "20261130-080910.456"} {
		run := filepath.Join(dir, name)
		webtest.BigRun(t, run, 1, 1, 3+steps)
		data, err := os.ReadFile(filepath.Join(run, webtest.BigID(0), "attempts", "1", "journal.jsonl"))
		if err == nil {
			err = os.MkdirAll(filepath.Join(sessions, name), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(sessions, name, "task.journal.jsonl"), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	first := filepath.Join(sessions, "20261130-070809.123")
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{first}, `id="s1"`},
		{[]string{filepath.Join(first, "task.journal.jsonl")}, `id="s1"`},
		{[]string{filepath.Join(first, "task.traj.json")}, `id="s1"`}, // stands for its journal
		{[]string{sessions}, "2 instances"},
		{[]string{sessions, "-i", "070809"}, "070809"},
	} {
		if filepath.Base(test.args[0]) == "task.traj.json" {
			if err := os.WriteFile(test.args[0], []byte("{}"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		address, stop := view(t, test.args...)
		if code, body := get(t, address); code != http.StatusOK || !strings.Contains(body, test.want) || strings.Contains(body, "mini-scratch") {
			t.Errorf("%v: %s: %d, without %q", test.args, address, code, test.want)
		}
		stop()
	}
}

// The address contains a token, and no page is served without it.
func TestViewToken(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	webtest.BigRun(t, dir, 1, 1, 2)
	for _, host := range []string{"127.0.0.1", "0.0.0.0"} {
		address, stop := view(t, dir, "--host", host)
		defer stop()
		port := regexp.MustCompile(`:(\d+)/`).FindStringSubmatch(address)[1]
		for _, query := range []string{"", "?token=", "?token=AAAA"} {
			if code, body := get(t, "http://127.0.0.1:"+port+"/"+query); code != http.StatusForbidden || !strings.Contains(body, "open the address that mini view printed") {
				t.Errorf("%s with %q: %d %s", host, query, code, body)
			}
		}
		if !strings.Contains(address, "?token=") {
			t.Error(address)
		}
	}
}
