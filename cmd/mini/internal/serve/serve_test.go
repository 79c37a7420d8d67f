package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/serve"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/fake/vllm"
)

const token = "0123456789abcdef-token"

func TestMain(m *testing.M) {
	home, err := os.MkdirTemp("", "mini-serve-test")
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"} {
		_ = os.Setenv(name, home)
	}
	_ = os.Setenv(serve.TokenVariable, token)
	code := m.Run()
	_ = os.RemoveAll(home)
	if code == 0 {
		if err := goleak.Find(goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// service is a running mini serve.
type service struct {
	t    *testing.T
	url  string
	dir  string
	stop func()
}

// start starts mini serve with a dataset of three rows and commands on this machine.
func start(t *testing.T, dir string, args ...string) *service {
	t.Helper()
	rows := filepath.Join(t.TempDir(), "rows.jsonl")
	var lines strings.Builder
	for _, id := range []string{"a__b-1", "a__b-2", "a__b-3"} {
		fmt.Fprintf(&lines, "{\"instance_id\": %q, \"problem_statement\": \"Fix it.\"}\n", id)
	}
	require.NoError(t, os.WriteFile(rows, []byte(lines.String()), 0o600))
	return startWith(t, dir, append([]string{"--subset", rows, "--environment-class", "local"}, args...)...)
}

// startWith is start with the flags of the dataset and the sandboxes in args.
func startWith(t *testing.T, dir string, args ...string) *service {
	t.Helper()
	out := &output{}
	command := serve.New(app.New(t.Context(), cmdutil.Streams{In: strings.NewReader(""), Out: io.Discard, Err: out}))
	command.SetArgs(append(args, "-o", dir, "--listen", "127.0.0.1:0", "-w", "2", "-c", "run.max_tries=1", "-c", "model.max_tries=1",
		"-m", "m", "-c", "model.base_url=http://127.0.0.1:1/v1"))
	command.SilenceErrors, command.SilenceUsage = true, true
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- command.ExecuteContext(ctx) }()
	s := &service{t: t, dir: dir, stop: sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("mini serve ends with %v", err)
		}
	})}
	t.Cleanup(s.stop)
	address := regexp.MustCompile(`http://[0-9.:]+`)
	for s.url == "" {
		select {
		case err := <-ended:
			t.Fatalf("mini serve ends with %v\n%s", err, out)
		case <-time.After(5 * time.Millisecond):
			s.url = address.FindString(out.String())
		}
	}
	return s
}

// output is a buffer for concurrent use.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// do sends a request with the token, unless a header replaces it.
func (s *service) do(method, path, body string, header ...string) (status int, reply map[string]any) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	require.NoError(s.t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	if resp.Header.Get("Content-Type") == "application/json" {
		require.NoError(s.t, json.Unmarshal(data, &reply))
	} else {
		reply = map[string]any{"text": string(data)}
	}
	return resp.StatusCode, reply
}

// wait waits until a rollout is over, and returns it.
func (s *service) wait(id, query string) map[string]any {
	s.t.Helper()
	for {
		status, reply := s.do("GET", "/rollouts/"+id+"?wait=60"+query, "")
		require.Equal(s.t, 200, status, "reply %v", reply)
		if state := reply["state"]; state != "queued" && state != "running" {
			return reply
		}
	}
}

// TestHostileClients: each gets a clear refusal, and the service goes on.
func TestHostileClients(t *testing.T) {
	tasks := t.TempDir()
	outside := t.TempDir()
	require.NoError(t, os.Symlink(outside, filepath.Join(tasks, "link")))
	s := start(t, filepath.Join(t.TempDir(), "serve"), "--tasks", tasks, "--per-client", "2")
	post := func(body string) []string { return []string{"POST", "/rollouts", body} }
	url := func(u string) []string {
		return post(fmt.Sprintf(`{"instance": "a__b-1", "model": "m", "base_url": %q}`, u))
	}
	for name, tt := range map[string]struct {
		request []string // method, path, body, and headers
		status  int
		message string
	}{
		"no token":                        {[]string{"GET", "/rollouts", "", "Authorization", ""}, 401, "Bearer TOKEN"},
		"wrong token":                     {[]string{"POST", "/verify", "{}", "Authorization", "Bearer " + token + "x"}, 401, "Bearer TOKEN"},
		"another scheme":                  {[]string{"GET", "/metrics", "", "Authorization", "Basic " + token}, 401, "Bearer TOKEN"},
		"page of a browser":               {[]string{"POST", "/rollouts", "{}", "Origin", "http://evil.example"}, 403, "browser"},
		"page without token":              {[]string{"GET", "/health", "", "Sec-Fetch-Site", "cross-site"}, 403, "browser"},
		"huge body":                       {post(`{"instance": "` + strings.Repeat("x", 9<<20) + `"}`), 413, "8388608 bytes"},
		"no JSON":                         {post("instance=a__b-1"), 400, "openapi.json"},
		"two values":                      {post(`{"instance": "a__b-1"} {}`), 400, "text after"},
		"unknown field":                   {post(`{"instance": "a__b-1", "envronment": "local"}`), 400, "envronment"},
		"nothing asked":                   {post("{}"), 400, "one of instance, row and task"},
		"unknown instance":                {post(`{"instance": "a__b-9"}`), 404, "did you mean"},
		"unknown dataset":                 {post(`{"subset": "/etc/passwd", "instance": "a__b-1"}`), 404, "no dataset"},
		"too many attempts":               {post(`{"instance": "a__b-1", "k": 1000000}`), 400, "from 1 to 64"},
		"no attempts":                     {post(`{"instance": "a__b-1", "k": 0}`), 400, "from 1 to 64"},
		"wrong type":                      {post(`{"instance": "a__b-1", "k": "four"}`), 400, "k: a string is the wrong type"},
		"run without an instance":         {[]string{"POST", "/run", `{"instance": "a__b-1"}`}, 400, "instance_id"},
		"path in an id":                   {[]string{"GET", "/rollouts/..%2f..%2fetc%2fpasswd", ""}, 404, "no such rollout"},
		"path in a DELETE":                {[]string{"DELETE", "/rollouts/%2e%2e", ""}, 404, ""},
		"task outside":                    {post(fmt.Sprintf(`{"task": %q}`, outside)), 403, "--tasks"},
		"task behind a link":              {post(`{"task": "link"}`), 403, "--tasks"},
		"task above":                      {post(`{"task": "../"}`), 403, "--tasks"},
		"metadata service":                {url("http://169.254.169.254/latest"), 400, "metadata"},
		"mapped to IPv6":                  {url("http://[::ffff:169.254.169.254]/v1"), 400, "metadata"},
		"as one number":                   {url("http://2852039166/v1"), 400, "four numbers"},
		"as octal numbers":                {url("http://0251.0376.0251.0376/v1"), 400, "four numbers"},
		"by name":                         {url("http://metadata.google.internal/v1"), 400, "metadata"},
		"a file":                          {url("file:///etc/passwd"), 400, "http"},
		"key in the URL":                  {url("http://user:key@127.0.0.1/v1"), 400, "without user"},
		"control characters":              {post(`{"instance": "a__b-1", "model": "m\u001b[2J"}`), 400, "control characters"},
		"key for the service's own model": {post(`{"instance": "a__b-1", "api_key": "k"}`), 400, "base_url"},
		"a row that is none":              {post(`{"row": [1, 2]}`), 400, "JSON object"},
		"a row with a path":               {post(`{"row": {"instance_id": "../../x", "problem_statement": "p"}}`), 400, "x"},
		"reserved sampling":               {post(`{"instance": "a__b-1", "sampling": {"api_key": "k"}}`), 400, "api_key"},
		"wait of a word":                  {[]string{"GET", "/rollouts/abc?wait=forever", ""}, 404, ""},
		"unknown method":                  {[]string{"PATCH", "/rollouts", ""}, 404, "openapi.json"},
		"verify nothing":                  {[]string{"POST", "/verify", `{"instance": "a__b-1"}`}, 400, "patch"},
	} {
		t.Run(name, func(t *testing.T) {
			s := *s
			s.t = t
			status, reply := s.do(tt.request[0], tt.request[1], tt.request[2], tt.request[3:]...)
			text, _ := json.Marshal(reply["error"])
			if status != tt.status || !strings.Contains(string(text), tt.message) {
				t.Errorf("status %d, %s", status, text)
			}
		})
	}
	t.Run("half a request", func(t *testing.T) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		require.NoError(t, err)
		defer conn.Close()
		_, err = fmt.Fprintf(conn, "POST /rollouts HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 100\r\n\r\n{", token)
		require.NoError(t, err)
		status, _ := s.do("GET", "/health", "")
		assert.Equal(t, 200, status, "status beside a slow client")
	})
	entries, err := os.ReadDir(filepath.Join(s.dir, "requests"))
	require.NoError(t, err)
	assert.Equal(t, 0, len(entries), "accepted rollouts")
}

// gateway is a model server with tokens, and a gateway with an address for each session. It keeps
// the keys and the rewards that it got.
type gateway struct {
	*vllm.Server
	asked   chan struct{} // gets a value at each request to the model
	mu      sync.Mutex
	keys    map[string]bool
	rewards map[string]any // by session
	// hold makes requests wait until it is closed; nil makes none wait.
	hold chan struct{}
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/reward_info") {
		g.addReward(r)
		return
	}
	select {
	case g.asked <- struct{}{}:
	default: // the test waits for no more
	}
	g.mu.Lock()
	g.keys[r.Header.Get("Authorization")] = true
	hold := g.hold
	g.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-r.Context().Done():
			return
		}
	}
	// The path has the session: /sessions/ID/v1/chat/completions.
	r.Header.Set("X-Conversation", strings.Split(r.URL.Path, "/")[2])
	g.Server.ServeHTTP(w, r)
}

// addReward keeps the reward of a request to /sessions/ID/reward_info.
func (g *gateway) addReward(r *http.Request) {
	var body struct {
		Info map[string]any `json:"reward_info"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rewards[strings.Split(r.URL.Path, "/")[2]] = body.Info["reward"]
}

func newGateway(t *testing.T) (*gateway, string) {
	t.Helper()
	g := &gateway{asked: make(chan struct{}, 2), keys: map[string]bool{}, rewards: map[string]any{}, Server: &vllm.Server{Reply: func(_ string, messages []model.Message) string {
		if len(messages) > 4 {
			return "That was all.\n```bash\necho COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo patch\n```"
		}
		return "First look around.\n```bash\necho something\n```"
	}}}
	server := httptest.NewServer(g)
	t.Cleanup(server.Close)
	return g, server.URL + "/sessions/{session}/v1"
}

// TestRollouts makes attempts with the model of a request, and reads what comes out.
func TestRollouts(t *testing.T) {
	g, url := newGateway(t)
	s := start(t, filepath.Join(t.TempDir(), "serve"))
	const key = "sk-secret-of-the-client-1"
	body := fmt.Sprintf(`{"instance": "a__b-1", "model": "policy", "base_url": %q, "api_key": %q, "sampling": {"temperature": 0.7},
		"group": "g7", "k": 8, "tokens": true, "evaluate": false}`, url, key)
	status, reply := s.do("POST", "/rollouts", body, "Idempotency-Key", "one")
	require.Equal(t, 202, status, "reply %v", reply)
	id, _ := reply["id"].(string)
	status, reply = s.do("GET", "/rollouts/"+id+"?token=none", "")
	assert.Equal(t, 400, status, "a misspelt parameter: %v", reply)
	status, again := s.do("POST", "/rollouts", body, "Idempotency-Key", "one")
	assert.Equal[any](t, id, again["id"], "id of the repeated request, status %d", status)
	status, _ = s.do("POST", "/rollouts", strings.Replace(body, `"k": 8`, `"k": 2`, 1), "Idempotency-Key", "one")
	assert.Equal(t, 409, status, "status of another request with the same idempotency key")

	result := s.wait(id, "&tokens=turns")
	require.Equal[any](t, "done", result["state"], "result %v", result)
	assert.Equal[any](t, "g7", result["group"])
	attempts, _ := result["attempts"].([]any)
	require.Equal(t, 8, len(attempts), "the group is complete")
	for i, a := range attempts {
		a, _ := a.(map[string]any)
		reward, hasReward := a["reward"]
		if a["sample"] != float64(i+1) || a["class"] != "submitted" || a["patch"] != "patch\n" || reward != nil || !hasReward {
			t.Errorf("attempt %v", a)
		}
		session, _ := a["session"].(string)
		checkTokens(t, a["tokens"], g.Calls(session))
	}
	assert.Equal(t, map[string]bool{"Bearer " + key: true}, g.keys, "keys that the model server got")
	checkNoText(t, s.dir, key)
	checkNoText(t, s.dir, token)

	_, result = s.do("GET", "/rollouts/"+id+"?tokens=segments", "")
	first, _ := result["attempts"].([]any)[0].(map[string]any)
	rows, _ := first["tokens"].([]any)
	assert.Equal(t, 1, len(rows), "segments of a conversation without drift")
	_, metrics := s.do("GET", "/metrics", "")
	for _, line := range []string{`mini_rollouts{state="done"} 1`, `mini_attempts_total{class="submitted"} 8`, `mini_rewards_total{reward="null"} 8`} {
		if text, _ := metrics["text"].(string); !strings.Contains(text, line+"\n") {
			t.Errorf("metrics without %s:\n%s", line, text)
		}
	}
}

// checkTokens compares the tokens of an attempt with the books of the server.
func checkTokens(t *testing.T, got any, books []vllm.Call) {
	t.Helper()
	rows, _ := got.([]any)
	require.Equal(t, len(books), len(rows), "turns")
	for i, row := range rows {
		data, _ := json.Marshal(row)
		var turn struct {
			Prompt   []int32   `json:"prompt_ids"`
			Response []int32   `json:"response_ids"`
			Logprobs []float64 `json:"logprobs"`
		}
		require.NoError(t, json.Unmarshal(data, &turn))
		if !slices.Equal(turn.Prompt, books[i].Prompt) || !slices.Equal(turn.Response, books[i].Completion) || !slices.Equal(turn.Logprobs, books[i].Logprobs) {
			t.Errorf("turn %d: %s, want %+v", i+1, data, books[i])
		}
	}
}

// checkNoText checks that no file below dir has a text.
func checkNoText(t *testing.T, dir, text string) {
	t.Helper()
	assert.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(text)) {
			t.Errorf("%s has %s", path, text)
		}
		return err
	}))
}

// TestRestart: another service continues what one has accepted; a rollout with a key waits
// for the key, and a deleted one stays deleted.
func TestRestart(t *testing.T) {
	g, url := newGateway(t)
	g.hold = make(chan struct{})
	dir := filepath.Join(t.TempDir(), "serve")
	s := start(t, dir)
	post := func(instance, key string) string {
		status, reply := s.do("POST", "/rollouts", fmt.Sprintf(`{"instance": %q, "model": "policy", "base_url": %q, "api_key": %q}`, instance, url, key))
		require.Equal(t, 202, status, "reply %v", reply)
		id, _ := reply["id"].(string)
		return id
	}
	open, keyed, deleted := post("a__b-1", ""), post("a__b-2", "sk-key-of-the-client"), post("a__b-3", "")
	status, reply := s.do("DELETE", "/rollouts/"+deleted, "")
	assert.Equal[any](t, "cancelled", reply["state"], "status %d", status)
	s.stop()

	g.mu.Lock()
	close(g.hold)
	g.hold = nil
	g.mu.Unlock()
	s = start(t, dir)
	assert.Equal[any](t, "done", s.wait(open, "")["state"], "the rollout of the service before")
	assert.Equal[any](t, "cancelled", s.wait(deleted, "")["state"], "the deleted rollout")
	assert.Equal[any](t, "needs_key", s.wait(keyed, "")["state"], "the rollout with a key")
	status, _ = s.do("PUT", "/rollouts/"+keyed+"/key", `{"api_key": ""}`)
	assert.Equal(t, 400, status, "an empty key")
	status, _ = s.do("PUT", "/rollouts/"+keyed+"/key", `{"api_key": "sk-key-of-the-client"}`)
	assert.Equal(t, 204, status)
	assert.Equal[any](t, "done", s.wait(keyed, "")["state"], "the rollout with its key again")
	status, _ = s.do("PUT", "/rollouts/"+keyed+"/key", `{"api_key": "k"}`)
	assert.Equal(t, 409, status, "a key for a rollout that is over")
}

// TestRun is the form of NeMo Gym: the answer has the conversation with its tokens, and a
// reward of null without a verdict.
func TestRun(t *testing.T) {
	_, url := newGateway(t)
	s := start(t, filepath.Join(t.TempDir(), "serve"), "--tokens")
	status, reply := s.do("POST", "/run", fmt.Sprintf(`{"responses_create_params": {"model": "policy", "temperature": 0.5, "input": []},
		"subset": "gym", "split": "train", "instance_id": "a__b-2", "policy_base_url": %q, "policy_api_key": "dummy_key", "problem_statement": "x"}`, url))
	require.Equal(t, 200, status, "reply %v", reply)
	reward, hasReward := reply["reward"]
	assert.Equal(t, true, hasReward && reward == nil, "reward %v", reward)
	response, _ := reply["response"].(map[string]any)
	output, _ := response["output"].([]any)
	roles := []string{}
	for _, item := range output {
		item, _ := item.(map[string]any)
		roles = append(roles, fmt.Sprint(item["role"]))
		if item["role"] == "assistant" && (item["prompt_token_ids"] == nil || item["generation_token_ids"] == nil || item["generation_log_probs"] == nil) {
			t.Errorf("a reply without tokens: %v", item)
		}
	}
	assert.Equal(t, []string{"assistant", "user", "assistant", "user", "assistant"}, roles)
}

// TestEndOfService: a request that waits is told to come again, and its attempt does not go on.
func TestEndOfService(t *testing.T) {
	g, url := newGateway(t)
	g.hold = make(chan struct{})
	dir := filepath.Join(t.TempDir(), "serve")
	s := start(t, dir)
	ended := make(chan int)
	go func() {
		status, _ := s.do("POST", "/run", fmt.Sprintf(`{"responses_create_params": {"model": "policy"}, "instance_id": "a__b-2", "policy_base_url": %q}`, url))
		ended <- status
	}()
	<-g.asked
	s.stop()
	assert.Equal(t, 503, <-ended, "status of the request")
	close(g.hold)
	s = start(t, dir)
	_, metrics := s.do("GET", "/metrics", "")
	if text, _ := metrics["text"].(string); !strings.Contains(text, `mini_rollouts{state="cancelled"} 1`) {
		t.Errorf("metrics:\n%s", text)
	}
}

// TestRow makes an attempt at a row of the request, which is stored as a dataset.
func TestRow(t *testing.T) {
	_, url := newGateway(t)
	s := start(t, filepath.Join(t.TempDir(), "serve"))
	status, reply := s.do("POST", "/rollouts", fmt.Sprintf(`{"row": {"instance_id": "new__row-1", "problem_statement": "the text of the row"}, "model": "policy", "base_url": %q}`, url))
	require.Equal(t, 202, status, "reply %v", reply)
	id, _ := reply["id"].(string)
	result := s.wait(id, "")
	assert.Equal[any](t, "done", result["state"], "result %v", result)
	assert.Equal[any](t, "new__row-1", result["instance"])
	checkNoText(t, filepath.Join(s.dir, "requests"), "the text of the row")
}

// TestLimits: a client that has as many rollouts as it may waits for one to end.
func TestLimits(t *testing.T) {
	g, url := newGateway(t)
	g.hold = make(chan struct{})
	defer close(g.hold)
	s := start(t, filepath.Join(t.TempDir(), "serve"), "--per-client", "2")
	body := fmt.Sprintf(`{"instance": "a__b-1", "model": "policy", "base_url": %q}`, url)
	for _, want := range []int{202, 202, 429} {
		status, reply := s.do("POST", "/rollouts", body)
		assert.Equal(t, want, status, "reply %v", reply)
	}
	_, list := s.do("GET", "/rollouts", "")
	all, _ := list["rollouts"].([]any)
	assert.Equal(t, 2, len(all), "rollouts of the client")
}

// TestFlags: wrong flags end the command with a hint.
func TestFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(file, []byte("trainer:short\n"), 0o600))
	readable := filepath.Join(t.TempDir(), "readable")
	require.NoError(t, os.WriteFile(readable, nil, 0o644))
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no dataset":        {nil, "--subset is needed"},
		"other machines":    {[]string{"--subset", "demo", "--listen", "0.0.0.0:7350"}, "--plain-http"},
		"no port":           {[]string{"--subset", "demo", "--listen", "localhost"}, "ADDRESS:PORT"},
		"half of TLS":       {[]string{"--subset", "demo", "--tls-cert", "x"}, "give both"},
		"short token":       {[]string{"--subset", "demo", "--token-file", file}, "at least 16"},
		"readable tokens":   {[]string{"--subset", "demo", "--token-file", readable}, "chmod 600"},
		"no such tasks":     {[]string{"--subset", "demo", "--tasks", "/no/such/folder"}, "no such folder"},
		"a flag of a batch": {[]string{"--subset", "demo", "-k", "3"}, "--attempts is not for mini serve"},
		"a wrong setting":   {[]string{"--subset", "demo", "-c", "run.reward_url=nourl"}, "run.reward_url"},
		"no limit of jobs":  {[]string{"--subset", "demo", "--queue", "0"}, "from 1"},
	} {
		t.Run(name, func(t *testing.T) {
			command := serve.New(app.New(t.Context(), cmdutil.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}))
			command.SetArgs(append(tt.args, "-o", filepath.Join(t.TempDir(), "serve")))
			command.SilenceErrors, command.SilenceUsage = true, true
			if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v", err)
			}
		})
	}
}
