package doctor

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/minibench/mini/env/docker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "rewrite golden files")

// A probe that hangs is answered for, and holds up nobody.
func TestExamineDoesNotHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, hung := time.Now(), make(chan struct{})
		checks := examine(t.Context(), allTimeout, []probe{
			{"deaf", Fail, func(context.Context) []Check { <-hung; return nil }},
			{"slow", Fail, func(ctx context.Context) []Check {
				<-ctx.Done()
				return []Check{{"slow", Warn, "came just in time", ""}}
			}},
			{"quick", Fail, func(context.Context) []Check { return []Check{{"quick", OK, "here", ""}} }},
		})
		want := []Check{
			{"deaf", Fail, "no answer within 9s", "something on this machine hangs; try again"},
			{"slow", Warn, "came just in time", ""},
			{"quick", OK, "here", ""},
		}
		if diff := cmp.Diff(want, checks); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if took := time.Since(start); took >= 10*time.Second {
			t.Errorf("it took %s", took)
		}
		close(hung)
	})
}

func TestWrite(t *testing.T) {
	checks := []Check{
		{"docker", OK, "engine 20.10, at unix:///var/run/docker.sock", ""},
		{"storage", Warn, "fuse-overlayfs, which makes starting any program in a container slow, and more words", "where the kernel has overlay2 for this user, configure that; this advice is long"},
		{"helper", Fail, "said \x1b[31mby a server\u202e " + strings.Repeat("漢字", 400), "mend it"},
	}
	var all bytes.Buffer
	for _, shown := range [][]Check{checks, checks[:2], checks[:1]} {
		if err := Write(&all, shown, 80); err != nil {
			t.Fatal(err)
		}
		all.WriteString("----\n")
	}
	for line := range strings.Lines(all.String()) {
		if ansi.StringWidth(line) > 80 || strings.ContainsAny(line, "\x1b\u202e") {
			t.Errorf("not fit for the screen: %q", line)
		}
	}
	golden(t, "checks.txt", all.String())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

const testKey = "sk-0123456789-secret"

// The model's server is asked with the key, and whatever it says is a warning
// at most; the key is never part of it.
func TestEndpoint(t *testing.T) {
	list := `{"data":[{"id":"small"},{"id":"gpt-5-mini"},{"id":"a"},{"id":"b\u001b[31m"}]}`
	tests := []struct {
		name, model, key string
		code             int
		body             string
		mark             Mark
		finding          string
	}{
		{"has it", "gpt-5-mini", testKey, 200, list, OK, "HOST answers and has gpt-5-mini"},
		{"has it not", "gpt-6", testKey, 200, list, Warn, "HOST answers, and gpt-6 is not among its 4 models"},
		{"none named", "", testKey, 200, list, OK, "HOST answers and has 4 models; -m picks one"},
		{"no list", "m", testKey, 404, "", OK, "HOST answers; it has no list of models (404)"},
		{"odd list", "m", testKey, 200, "<html>", OK, "HOST answers; its list of models says nothing"},
		{"endless list", "m", testKey, 200, `{"data":[{"id":"` + strings.Repeat("x", maxModels), OK, "HOST answers; its list of models says nothing"},
		{"wrong key", "m", testKey, 401, testKey, Warn, "HOST refuses the key in THE_KEY (401)"},
		{"no key", "m", "", 401, "", Warn, "HOST answers, and wants a key (401)"},
		{"busy", "m", testKey, 429, "", Warn, "HOST answers that there were too many requests (429)"},
		{"broken", "m", testKey, 503, "", Warn, "HOST answers with an error of its own (503)"},
		{"redirect", "m", testKey, 302, "", OK, "HOST answers; it has no list of models (302)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				authorized := r.Header.Get("Authorization") == "Bearer "+tt.key || tt.key == "" && r.Header.Get("Authorization") == ""
				if r.URL.Path != "/v1/models" || !authorized {
					t.Errorf("asked for %s with %q", r.URL.Path, r.Header.Get("Authorization"))
				}
				w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
				w.WriteHeader(tt.code)
				_, _ = w.Write([]byte(tt.body))
			}))
			defer server.Close()
			e := Server{BaseURL: server.URL + "/v1/", Model: tt.model, Key: tt.key, KeyEnv: "THE_KEY"}
			got := e.endpoint(t.Context())[0]
			finding := strings.ReplaceAll(got.Finding, strings.TrimPrefix(server.URL, "http://"), "HOST")
			if got.Mark != tt.mark || finding != tt.finding {
				t.Errorf("%s, %q; want %s, %q", got.Mark, finding, tt.mark, tt.finding)
			}
			if strings.Contains(got.Finding+got.Advice, testKey) {
				t.Errorf("the key is shown: %+v", got)
			}
			if (got.Mark == OK) != (got.Advice == "") {
				t.Errorf("advice is for what is not well: %+v", got)
			}
		})
	}
}

// Anthropic's API is asked in its own way, and knows names without their dates.
func TestAnthropicEndpoint(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" || r.Header.Get("X-Api-Key") != testKey || r.Header.Get("Anthropic-Version") == "" || r.Header.Get("Authorization") != "" {
			t.Errorf("asked for %s with %v", r.URL, r.Header)
		}
		_, _ = w.Write([]byte(`{"data":[{"type":"model","id":"claude-sonnet-4-5-20250929"},{"id":"claude-opus-5"}],"has_more":false}`))
	}))
	defer server.Close()
	for name, want := range map[string]Mark{
		"claude-sonnet-4-5": OK, "claude-sonnet-4-5-20250929": OK, "claude-opus-5": OK, "claude-sonnet-4": Warn, "claude-opus": Warn,
	} {
		e := Server{BaseURL: server.URL + "/v1", Anthropic: true, Model: name, Key: testKey, KeyEnv: "THE_KEY"}
		if got := e.endpoint(t.Context())[0]; got.Mark != want || strings.Contains(got.Finding+got.Advice, testKey) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestEndpointThatCannotBeReached(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	for address, want := range map[string]string{
		gone.URL:                           "the connection is refused",
		"ftp://host/v1":                    "the server's address is no URL",
		"http://user:" + testKey + "@%zz/": "the server's address is no URL",
	} {
		e := Server{BaseURL: address, Key: testKey}
		got := e.endpoint(t.Context())[0]
		if got.Mark != Warn || !strings.Contains(got.Finding, want) || strings.Contains(got.Finding+got.Advice, testKey) {
			t.Errorf("%s: %+v", address, got)
		}
	}
}

// Reasons are short, and have no address in them: there may be a key in it.
func TestReason(t *testing.T) {
	address := "http://user:" + testKey + "@host/"
	for want, err := range map[string]error{
		"there is no such host":              &net.DNSError{Err: "no such host", Name: "host", IsNotFound: true},
		"its name cannot be resolved":        &net.DNSError{Err: "server misbehaving", Name: "host"},
		"nothing within 5s":                  context.DeadlineExceeded,
		"the connection is refused":          &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		"the address of the proxy is no URL": fmt.Errorf("invalid proxy address %q", address),
		"http: server gave an odd answer":    errors.New("http: server gave an odd answer"),
	} {
		if got := reason(&url.Error{Op: "Get", URL: address, Err: err}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestKey(t *testing.T) {
	for _, tt := range []struct {
		server Server
		mark   Mark
		text   string
	}{
		{Server{Scripted: true}, OK, "scripted"},
		{Server{KeyEnv: "K", Key: testKey}, OK, "K is set"},
		{Server{KeyEnv: "K", OwnServer: true}, OK, "may need none"},
		{Server{KeyEnv: "K"}, Warn, "K is not set"},
	} {
		got := tt.server.key(t.Context())[0]
		if got.Mark != tt.mark || !strings.Contains(got.Finding, tt.text) || strings.Contains(got.Finding+got.Advice, testKey) {
			t.Errorf("%+v", got)
		}
	}
}

// TestServersOfARoute says once what is so of several.
func TestServersOfARoute(t *testing.T) {
	e := &examination{Config: Config{Servers: []Server{{KeyEnv: "A", Key: testKey}, {KeyEnv: "B"}, {KeyEnv: "A", Key: testKey}}}}
	got := e.ofServers(Server.key)(t.Context())
	if len(got) != 2 || got[0].Mark != OK || got[1].Mark != Warn || !strings.Contains(got[1].Finding, "B is not set") {
		t.Errorf("%+v", got)
	}
}

// What an engine may be like; few are like that here.
func TestEngineFindings(t *testing.T) {
	good := docker.Description{
		Arch: "amd64", Cgroup: "2", Storage: "overlay2", CPUs: 4, Memory: 16 << 30,
		MemoryLimit: true, SwapLimit: true, PIDsLimit: true, CPULimit: true,
	}
	with := func(change func(*docker.Description)) docker.Description {
		d := good
		change(&d)
		return d
	}
	arm := with(func(d *docker.Description) { d.Arch = "arm64" })
	rootless := with(func(d *docker.Description) { d.Rootless, d.MemoryLimit, d.PIDsLimit = true, false, false })
	for _, tt := range []struct {
		got  Check
		mark Mark
		text string
	}{
		{architecture(good, ""), OK, "amd64"},
		{architecture(arm, ""), Warn, "environment.platform=linux/amd64"},
		{architecture(arm, "linux/amd64"), Warn, "emulated"},
		{limits(good), OK, "cgroup version 2"},
		{limits(rootless), Warn, "not bounded: memory, processes"},
		{limits(rootless), Warn, "Delegate="},
		{limits(with(func(d *docker.Description) { d.PIDsLimit = false })), Warn, "not bounded: processes"},
		{limits(with(func(d *docker.Description) { d.Cgroup, d.SwapLimit = "1", false })), Warn, "swapaccount=1"},
		{storage(good), OK, "overlay2"},
		{storage(with(func(d *docker.Description) { d.Storage = "fuse-overlayfs" })), Warn, "slow"},
		{storage(with(func(d *docker.Description) { d.Storage = "vfs" })), Warn, "copies the whole image"},
		{(&examination{Config: Config{Workers: 4, MemoryBytes: 4 << 30}}).room(good), OK, "4 workers"},
		{(&examination{Config: Config{Workers: 8, MemoryBytes: 4 << 30}}).room(good), Warn, "-w 4 is safe"},
		{(&examination{Config: Config{Workers: 40, MemoryBytes: 64 << 20}}).room(good), Warn, "want of processors"},
		{(&examination{Config: Config{Workers: 40}}).room(good), OK, "40 workers"},
	} {
		if tt.got.Mark != tt.mark || !strings.Contains(tt.got.Finding+" "+tt.got.Advice, tt.text) {
			t.Errorf("want %s and %q: %+v", tt.mark, tt.text, tt.got)
		}
	}
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	if c := folder("runs", filepath.Join(dir, "not", "yet"), 1, "make room, or go elsewhere"); c.Mark != OK || !strings.Contains(c.Finding, "free in") {
		t.Errorf("%+v", c)
	}
	if c := folder("runs", dir, 1<<62, "make room, or go elsewhere"); c.Mark != Warn || c.Advice != "make room, or go elsewhere" {
		t.Errorf("%+v", c)
	}
	if c := folder("runs", "/proc/self", 1, "make room, or go elsewhere"); c.Mark != Warn || c.Advice != "go elsewhere" {
		t.Errorf("%+v", c)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// The context of the docker command, by the layout of its files.
func TestDockerContext(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("DOCKER_HOST", "")
	t.Setenv("DOCKER_CONTEXT", "")
	t.Setenv("DOCKER_CONFIG", dir)
	if name, host := dockerContext(); name != "" || host != "" {
		t.Errorf("without files: %q, %q", name, host)
	}
	// sha256 of "colima", as the docker command names the folder
	meta := filepath.Join(dir, "contexts", "meta", "f24fd3749c1368328e2b149bec149cb6795619f244c5b584e844961215dadd16")
	if err := os.MkdirAll(meta, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{
		filepath.Join(dir, "config.json"): `{"currentContext":"colima"}`,
		filepath.Join(meta, "meta.json"):  `{"Name":"colima","Endpoints":{"docker":{"Host":"unix:///home/me/.colima/docker.sock"}}}`,
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if name, host := dockerContext(); name != "colima" || host != "unix:///home/me/.colima/docker.sock" {
		t.Errorf("%q, %q", name, host)
	}
	t.Setenv("DOCKER_HOST", "unix:///other")
	if name, _ := dockerContext(); name != "" {
		t.Errorf("DOCKER_HOST wins over %q", name)
	}
}
