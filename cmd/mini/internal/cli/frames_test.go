package cli_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/coverage"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minibench/mini/cmd/mini/internal/cli"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/env/docker/dockertest"
)

// The limits of the number of mini's own functions on the stack of a worker at the first request
// to a model, and at the first command of an evaluation, without the client of the helper. A path
// that is longer is hard to follow.
const (
	maxRequestFrames    = 11
	maxEvaluationFrames = 9
)

func TestFramesOfFirstRequest(t *testing.T) {
	t.Parallel()
	rows := filepath.Join(t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(rows, []byte(`{"instance_id": "a__b-1", "problem_statement": "Fix it."}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	checkFrames(t, maxRequestFrames, "bench", "--subset", rows, "--environment-class", "local", "-m", "m", "-c", "model.base_url=http://127.0.0.1:1/v1",
		"-c", "model.max_tries=1", "-c", "run.max_tries=1", "-o", filepath.Join(t.TempDir(), "run"))
}

func TestFramesOfFirstEvaluation(t *testing.T) {
	t.Parallel()
	dockertest.Image(t)
	checkFrames(t, maxEvaluationFrames, "eval", "--subset", "demo", "-p", "gold", "-i", "minidemo__foldtext-8", "-o", filepath.Join(t.TempDir(), "run"))
}

// checkFrames runs mini in a process of its own, and counts the functions on the stack.
func checkFrames(t *testing.T, limit int, args ...string) {
	t.Helper()
	home, out := t.TempDir(), filepath.Join(t.TempDir(), "stack")
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), "GODEBUG=tracebackancestors=20", "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home,
		"OPENAI_API_KEY=k", framesVariable+"="+out)
	text, _ := cmd.CombinedOutput() // it may fail, because no model answers
	stack, err := os.ReadFile(out)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	own := ownFrames(stack)
	t.Log(strings.Join(own, "\n"))
	if own == nil {
		t.Fatalf("no worker in\n%s", stack)
	}
	if len(own) > limit {
		t.Errorf("%d functions, want at most %d", len(own), limit)
	}
}

// ownFrames returns mini's functions on a stack with those of the goroutines that started it, from
// the innermost to that of the worker. It leaves out the helper's client, and this test.
func ownFrames(stack []byte) (own []string) {
	for line := range strings.Lines(string(stack)) {
		// Lines of files are indented.
		if !strings.HasPrefix(line, "github.com/minibench/mini/") || strings.Contains(line, "cli_test.") || strings.Contains(line, "/env/helper.") {
			continue
		}
		name := line[:strings.LastIndex(line, "(")]
		own = append(own, name)
		if name == "github.com/minibench/mini/runner.(*pool).work" {
			return own
		}
	}
	return nil
}

// framesVariable names the file for the stack of the first request or command. It makes the
// test's executable run mini.
const framesVariable = "MINI_TEST_FRAMES"

// recordFrames runs mini, and stores the stack of the first request to a model or of the first
// command in a container.
func recordFrames() {
	var once sync.Once
	record := func(stack []byte) {
		once.Do(func() {
			if dir := os.Getenv("MINI_TEST_FRAMES_COVERAGE"); dir != "" { // of an executable built with -cover
				if err := errors.Join(coverage.WriteMetaDir(dir), coverage.WriteCountersDir(dir)); err != nil {
					panic(err)
				}
			}
			if err := os.WriteFile(os.Getenv(framesVariable), stack, 0o600); err != nil {
				panic(err)
			}
		})
	}
	http.DefaultTransport = roundTripper(func(*http.Request) (*http.Response, error) {
		stack := make([]byte, 1<<20)
		record(stack[:runtime.Stack(stack, false)])
		return &http.Response{StatusCode: http.StatusBadRequest, Body: io.NopCloser(strings.NewReader("{}"))}, nil
	})
	go func() { // the first command
		if os.Args[1] != "eval" {
			return
		}
		stacks := make([]byte, 16<<20)
		for ; ; time.Sleep(time.Millisecond) {
			for stack := range bytes.SplitSeq(stacks[:runtime.Stack(stacks, true)], []byte("\n\n")) {
				if bytes.Contains(stack, []byte("env/helper.(*Client).Execute(")) {
					record(stack)
					return
				}
			}
		}
	}()
	os.Exit(cli.Main(cli.Arguments(os.Args), cmdutil.SystemStreams()))
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
