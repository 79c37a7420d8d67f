package decider_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/agent/policy"
	"github.com/minibench/mini/agent/policy/decider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func sh(t *testing.T, script string, limit time.Duration) decider.Command {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh here")
	}
	return decider.Command{Args: []string{"sh", "-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}, Timeout: limit}
}

func TestCommand(t *testing.T) {
	question := policy.Question{Version: 1, Command: "rm -rf build", Programs: []string{"rm"}}
	tests := map[string]struct {
		script string
		want   policy.Answer
		err    string
	}{
		"a word":           {`cat > /dev/null; echo allow`, policy.Answer{Action: agent.Allow}, ""},
		"an object":        {`echo '{"decision":"deny","reason":"no builds"}'`, policy.Answer{Action: agent.Deny, Reason: "no builds"}, ""},
		"more keys":        {`echo '{"decision":"ask","score":3}'`, policy.Answer{Action: agent.Ask}, ""},
		"it reads":         {`grep -q '"command":"rm -rf build"' && echo deny`, policy.Answer{Action: agent.Deny}, ""},
		"exit code":        {`echo allow; exit 3`, policy.Answer{}, "exit status 3"},
		"killed":           {`echo allow; kill -9 $$`, policy.Answer{}, "signal: killed"},
		"nothing":          {`true`, policy.Answer{}, "empty"},
		"another word":     {`echo yes`, policy.Answer{}, `"yes"`},
		"two words":        {`echo allow; echo deny`, policy.Answer{}, "not allow, ask or deny"},
		"broken JSON":      {`echo '{"decision":'`, policy.Answer{}, "not a JSON"},
		"of another kind":  {`echo '{"decision":1}'`, policy.Answer{}, "not a JSON"},
		"no decision":      {`echo '{"reason":"x"}'`, policy.Answer{}, "no decision"},
		"two objects":      {`echo '{"decision":"allow"} {"decision":"deny"}'`, policy.Answer{}, "unexpected data"},
		"too long":         {`yes allow | head -c 1000000`, policy.Answer{}, "longer than 64 KB"},
		"too long at last": {`echo allow; yes '' | head -c 1000000`, policy.Answer{}, "longer than 64 KB"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := sh(t, test.script, 0).Ask(t.Context(), question)
			check(t, got, err, test.want, test.err)
		})
	}
	if _, err := (decider.Command{Args: []string{"/no/such/program"}}).Ask(t.Context(), question); err == nil {
		t.Error("a program that is not there answers")
	}
}

func check(t *testing.T, got policy.Answer, err error, want policy.Answer, text string) {
	t.Helper()
	if text == "" && err != nil || text != "" && (err == nil || !strings.Contains(err.Error(), text)) {
		t.Errorf("error %v, want %q", err, text)
	}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestCommandTimeout checks that a timeout kills all processes of a command.
func TestCommandTimeout(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("process groups are Linux's here")
	}
	file := filepath.Join(t.TempDir(), "pid")
	for limit := 500 * time.Millisecond; ; limit *= 4 {
		_, err := sh(t, `sleep 1000 & echo $! > '`+file+`'; wait`, limit).Ask(t.Context(), policy.Question{})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprint("within ", limit)) {
			t.Fatal(err)
		}
		if pid, _ := os.ReadFile(file); len(pid) > 0 {
			break // otherwise the timeout was too short for a busy machine
		}
	}
	waitForExit(t, file)
	// A program that answers and leaves a process running.
	got, err := sh(t, `sleep 1000 > /dev/null 2>&1 & echo $! > '`+file+`'; echo allow`, 0).Ask(t.Context(), policy.Question{})
	check(t, got, err, policy.Answer{Action: agent.Allow}, "")
	waitForExit(t, file)
}

// waitForExit waits until the process whose ID is in a file has exited.
func waitForExit(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	stat := filepath.Join("/proc", strings.TrimSpace(string(data)), "stat")
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(10 * time.Second); ; {
		text, err := os.ReadFile(stat)
		if err != nil || strings.Contains(string(text), ") Z ") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("it lives: %s", text)
		}
		<-poll.C
	}
}

func TestServer(t *testing.T) {
	redirected := 0
	mux := http.NewServeMux()
	mux.HandleFunc("/elsewhere", func(w http.ResponseWriter, _ *http.Request) { redirected++; _, _ = w.Write([]byte("allow")) })
	mux.HandleFunc("/{what}", func(w http.ResponseWriter, r *http.Request) {
		var q policy.Question
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil || q.Command != "ls" || r.Method != http.MethodPost || r.Header.Get("Authorization") != "Bearer token-1" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		switch r.PathValue("what") {
		case "allow":
			_, _ = w.Write([]byte("allow\n"))
		case "deny":
			_, _ = w.Write([]byte(`{"decision":"deny","reason":"not today"}`))
		case "500":
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte("allow"))
		case "204":
			w.WriteHeader(http.StatusNoContent)
		case "redirect":
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		case "long":
			_, _ = w.Write([]byte(strings.Repeat("allow\n", 20000)))
		case "slow":
			<-r.Context().Done()
		case "html":
			_, _ = w.Write([]byte("<html>allow</html>"))
		}
	})
	s := httptest.NewServer(mux)
	defer s.Close()
	tests := map[string]struct {
		path string
		want policy.Answer
		err  string
	}{
		"allow":       {"allow", policy.Answer{Action: agent.Allow}, ""},
		"deny":        {"deny", policy.Answer{Action: agent.Deny, Reason: "not today"}, ""},
		"error":       {"500", policy.Answer{}, "HTTP status 500"},
		"no content":  {"204", policy.Answer{}, "HTTP status 204"},
		"redirection": {"redirect", policy.Answer{}, "HTTP status 307"},
		"too long":    {"long", policy.Answer{}, "longer than 64 KB"},
		"slow":        {"slow", policy.Answer{}, "within 300ms"},
		"a page":      {"html", policy.Answer{}, "not allow, ask or deny"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			limit := time.Duration(0)
			if test.path == "slow" {
				limit = 300 * time.Millisecond
			}
			d := decider.Server{URL: s.URL + "/" + test.path, Header: "Authorization", Value: "Bearer token-1", Timeout: limit}
			got, err := d.Ask(t.Context(), policy.Question{Command: "ls"})
			check(t, got, err, test.want, test.err)
			if err != nil && strings.Contains(err.Error(), "token-1") {
				t.Errorf("the token is in the error: %v", err)
			}
		})
	}
	if redirected > 0 {
		t.Error("a redirection was followed")
	}
	down := decider.Server{URL: "http://127.0.0.1:1/"}
	if _, err := down.Ask(t.Context(), policy.Question{}); err == nil {
		t.Error("a server that is down answers")
	}
}
