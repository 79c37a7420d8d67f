package doctor

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/minibench/mini/env/docker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var update = flag.Bool("update", false, "rewrite golden files")

func TestDoc(t *testing.T) {
	checks := []Check{
		{"docker", OK, "engine 20.10, at unix:///var/run/docker.sock", ""},
		{"storage", Warn, "fuse-overlayfs, which makes starting any program in a container slow, and more words", "where the kernel has overlay2 for this user, configure that; this advice is long"},
		{"helper", Fail, "said \x1b[31mby a server\u202e " + strings.Repeat("漢字", 400), "mend it"},
	}
	all := ""
	for _, shown := range [][]Check{checks, checks[:2], checks[:1]} {
		all += Doc(shown).Text(80) + "----\n"
	}
	for line := range strings.Lines(all) {
		if ansi.StringWidth(line) > 80 || strings.ContainsAny(line, "\x1b\u202e") {
			t.Errorf("not fit for the screen: %q", line)
		}
	}
	golden(t, "checks.txt", all)
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

// The model's server gets the key. Findings never contain the key.
func TestEndpoint(t *testing.T) {
	list := `{"data":[{"id":"small"},{"id":"gpt-5-mini"},{"id":"a"},{"id":"b\u001b[31m"}]}`
	tests := []struct {
		name, model, key string
		code             int
		body             string
		mark             Status
		finding          string
	}{
		{"has it", "gpt-5-mini", testKey, 200, list, OK, "HOST responds and has gpt-5-mini"},
		{"has it not", "gpt-6", testKey, 200, list, Fail, "HOST responds, but gpt-6 is not among its 4 models"},
		{"a variant", "small:free", testKey, 200, list, OK, "HOST responds and has small:free"},
		{"none named", "", testKey, 200, list, OK, "HOST responds and has 4 models; select one with -m"},
		{"no list", "m", testKey, 404, "", OK, "HOST responds; it lists no models (404)"},
		{"odd list", "m", testKey, 200, "<html>", OK, "HOST responds; its list of models is empty"},
		{"wrong key", "m", testKey, 401, testKey, Fail, "HOST rejects the key in THE_KEY (401)"},
		{"no key", "m", "", 401, "", Warn, "HOST requires a key (401)"},
		{"busy", "m", testKey, 429, "", Warn, "HOST is rate-limiting requests (429)"},
		{"broken", "m", testKey, 503, "", Warn, "HOST responds with a server error (503)"},
		{"redirect", "m", testKey, 302, "", OK, "HOST responds; it lists no models (302)"},
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
			if got.Status != tt.mark || finding != tt.finding {
				t.Errorf("%s, %q; want %s, %q", got.Status, finding, tt.mark, tt.finding)
			}
			if strings.Contains(got.Finding+got.Advice, testKey) {
				t.Errorf("the key is shown: %+v", got)
			}
			if (got.Status == OK) != (got.Advice == "") {
				t.Errorf("advice is for what is not well: %+v", got)
			}
		})
	}
}

// Anthropic's API has its own headers, and accepts names without dates.
func TestAnthropicEndpoint(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" || r.Header.Get("X-Api-Key") != testKey || r.Header.Get("Anthropic-Version") == "" || r.Header.Get("Authorization") != "" {
			t.Errorf("asked for %s with %v", r.URL, r.Header)
		}
		_, _ = w.Write([]byte(`{"data":[{"type":"model","id":"claude-sonnet-4-5-20250929"},{"id":"claude-opus-5"}],"has_more":false}`))
	}))
	defer server.Close()
	for name, want := range map[string]Status{
		"claude-sonnet-4-5": OK, "claude-sonnet-4-5-20250929": OK, "claude-opus-5": OK, "claude-sonnet-4": Fail, "claude-opus": Fail,
	} {
		e := Server{BaseURL: server.URL + "/v1", UsesAnthropicAPI: true, Model: name, Key: testKey, KeyEnv: "THE_KEY"}
		if got := e.endpoint(t.Context())[0]; got.Status != want || strings.Contains(got.Finding+got.Advice, testKey) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestUnreachableEndpoint(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	for address, want := range map[string]string{
		closed.URL:                         "connection refused",
		"ftp://host/v1":                    "the server's address is not a URL",
		"http://user:" + testKey + "@%zz/": "the server's address is not a URL",
	} {
		e := Server{BaseURL: address, Key: testKey}
		got := e.endpoint(t.Context())[0]
		if got.Status != Warn || !strings.Contains(got.Finding, want) || strings.Contains(got.Finding+got.Advice, testKey) {
			t.Errorf("%s: %+v", address, got)
		}
	}
}

func TestKey(t *testing.T) {
	for _, tt := range []struct {
		server Server
		mark   Status
		text   string
	}{
		{Server{Scripted: true}, OK, "scripted"},
		{Server{KeyEnv: "K", Key: testKey}, OK, "K is set"},
		{Server{KeyEnv: "K", CustomServer: true}, OK, "may not need a key"},
		{Server{KeyEnv: "K"}, Warn, "K is not set"},
	} {
		got := tt.server.key(t.Context())[0]
		if got.Status != tt.mark || !strings.Contains(got.Finding, tt.text) || strings.Contains(got.Finding+got.Advice, testKey) {
			t.Errorf("%+v", got)
		}
	}
}

// Findings shared by several servers are listed once.
func TestSeveralServers(t *testing.T) {
	e := &checker{Config: Config{Servers: []Server{{KeyEnv: "A", Key: testKey}, {KeyEnv: "B"}, {KeyEnv: "A", Key: testKey}}}}
	got := e.eachServer(Server.key)(t.Context())
	if len(got) != 2 || got[0].Status != OK || got[1].Status != Warn || !strings.Contains(got[1].Finding, "B is not set") {
		t.Errorf("%+v", got)
	}
}

// The checks of the engine report restrictions that few machines have.
func TestEngineFindings(t *testing.T) {
	good := docker.Description{Arch: "amd64", CPUs: 4, Memory: 16 << 30, MemoryLimit: true, PIDsLimit: true, CPULimit: true}
	arm := good
	arm.Arch = "arm64"
	for _, tt := range []struct {
		got  Check
		mark Status
		text string
	}{
		{architecture(good, ""), OK, "amd64"},
		{architecture(arm, ""), Warn, "environment.platform=linux/amd64"},
		{architecture(arm, "linux/amd64"), Warn, "emulated"},
		{limits(good), OK, "can be limited"},
		{limits(docker.Description{MemoryLimit: true, CPULimit: true}), Warn, "Delegate="},
		{(&checker{Config: Config{Workers: 4, MemoryBytes: 4 << 30}}).memory(good), OK, "4 workers"},
		{(&checker{Config: Config{Workers: 8, MemoryBytes: 4 << 30}}).memory(good), Warn, "use -w 4"},
		{(&checker{Config: Config{Workers: 40, MemoryBytes: 64 << 20}}).memory(good), Warn, "too few processors"},
		{(&checker{Config: Config{Workers: 40}}).memory(good), OK, "40 workers"},
	} {
		if tt.got.Status != tt.mark || !strings.Contains(tt.got.Finding+" "+tt.got.Advice, tt.text) {
			t.Errorf("want %s and %q: %+v", tt.mark, tt.text, tt.got)
		}
	}
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	if c := checkFolder("runs", filepath.Join(dir, "not", "yet"), 1, "make room, or go elsewhere"); c.Status != OK || !strings.Contains(c.Finding, "free in") {
		t.Errorf("%+v", c)
	}
	if c := checkFolder("runs", dir, 1<<62, "make room, or go elsewhere"); c.Status != Warn || c.Advice != "make room, or go elsewhere" {
		t.Errorf("%+v", c)
	}
	if c := checkFolder("runs", "/proc/self", 1, "make room, or go elsewhere"); c.Status != Warn || c.Advice != "go elsewhere" {
		t.Errorf("%+v", c)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// dockerContext returns the context of the docker command, except the default one.
func TestDockerContext(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if name, host := dockerContext(t.Context()); name != "" || host != "" {
		t.Errorf("without a docker command: %q, %q", name, host)
	}
	for output, want := range map[string]string{
		"colima unix:///home/me/.colima/docker.sock": "colima unix:///home/me/.colima/docker.sock",
		"default unix:///var/run/docker.sock":        " ",
	} {
		if err := os.WriteFile(filepath.Join(dir, "docker"), []byte("#!/bin/sh\necho '"+output+"'\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if name, host := dockerContext(t.Context()); name+" "+host != want {
			t.Errorf("%q: %q, %q", output, name, host)
		}
	}
}
