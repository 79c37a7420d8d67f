// Package rewards sends the reward of each attempt of a run to the gateway that has
// recorded its calls, so that a trainer finds both there.
//
// Each attempt is sent once, after its verdict, or at its end if there will be none. What
// was sent is recorded in rewards.jsonl in the folder of the run. A failure is a warning:
// the run continues, and the next session sends what is missing.
package rewards

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"text/template"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/minibench/mini/datasets"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/runner"
	"github.com/minibench/mini/runner/runs"
	"github.com/minibench/mini/runner/source"
	"github.com/minibench/mini/runner/verdicts"
	"github.com/minibench/mini/trajectories/export"
)

// DefaultBody is the template of the body that uni-agent's gateway reads from
// POST /sessions/{session}/reward_info (verl, uni_agent/gateway/session). Without a
// verdict the reward is null, and the class says why.
const DefaultBody = `{"reward_info": {"reward": {{json .Reward}}, "acc": {{json .Reward}}, "finished": {{json .HasVerdict}}, ` +
	`"class": {{json .Class}}, "exit_status": {{json .ExitStatus}}, "verdict": {{json .Verdict}}, "instance_id": {{json .Instance}}, "attempt": {{.Attempt}}}}`

// Reward is what a template of the body can use.
type Reward struct {
	Instance   string
	Attempt    int // in the run folder
	Sample     int // the repetition, from 1
	Session    string
	Class      string // of the outcome
	ExitStatus string
	Verdict    string   // "" if there is none
	HasVerdict bool     // Reward is known
	Reward     *float64 // nil if there is no verdict
}

// ParseBody parses a template of the body, and tries it.
func ParseBody(text string) (*template.Template, error) {
	t, err := template.New("run.reward_body").Funcs(template.FuncMap{"json": encode}).Parse(cmp.Or(text, DefaultBody))
	if err == nil {
		err = t.Execute(io.Discard, Reward{Instance: "example", Attempt: 1, Sample: 1})
	}
	return t, err
}

func encode(v any) (string, error) {
	data, err := json.Marshal(v)
	return string(data), err
}

// CheckURL returns an error for a URL that cannot be used.
func CheckURL(address string) error {
	if err := model.CheckPlaceholders(address); err != nil {
		return err
	}
	u, err := url.Parse(expand(address, Reward{Instance: "i", Session: "s"}))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return errors.New("want http:// or https:// and a host, without user and query, because it is written to files")
	}
	return nil
}

func expand(address string, r Reward) string {
	return model.Conversation{Instance: r.Instance, Attempt: r.Attempt, Session: r.Session}.Expand(address, url.PathEscape)
}

// Limits of requests.
const (
	maxTries    = 5
	timeout     = 30 * time.Second
	maxParallel = 8
	maxReply    = 64 << 10 // bytes read of a reply
	maxRecord   = 64 << 20 // bytes of rewards.jsonl
)

// Config configures a Sender.
type Config struct {
	Folder *runner.Folder
	URL    string // can have placeholders
	Body   *template.Template
	// Warn is called with what could not be sent.
	Warn func(instance string, err error)
	// IsEvaluated reports whether submissions for an instance are evaluated, so that a
	// verdict follows.
	IsEvaluated func(instance string) bool
	// IsOwn reports whether the user made a verdict record.
	IsOwn func(verdicts.Record) bool
	HTTP  *http.Client // nil means the default client
}

// Sender sends rewards. Its methods are safe for concurrent use.
type Sender struct {
	Config
	ctx  context.Context //nolint:containedctx // ends with Close
	stop context.CancelFunc
	room chan struct{}
	wait sync.WaitGroup

	mu   sync.Mutex
	last map[sample]int  // the attempt of a sample that ended last
	sent map[string]bool // by session
}

// sample identifies a repetition of an instance.
type sample struct {
	instance   string
	repetition int
}

// record is a line of rewards.jsonl.
type record struct {
	Time     time.Time `json:"time"`
	Instance string    `json:"instance_id"`
	Attempt  int       `json:"attempt"`
	Session  string    `json:"session"`
	URL      string    `json:"url"`
	Class    string    `json:"class"`
	Verdict  string    `json:"verdict,omitempty"`
	Reward   *float64  `json:"reward"`
	Tries    int       `json:"tries"`
	Status   int       `json:"status,omitempty"` // of the last reply; 0 if there was none
	Error    string    `json:"error,omitempty"`
}

// Open returns a Sender. It reads what earlier sessions of the run have sent.
func Open(c Config) (*Sender, error) {
	s := &Sender{Config: c, room: make(chan struct{}, maxParallel), last: map[sample]int{}, sent: map[string]bool{}}
	s.HTTP = cmp.Or(c.HTTP, &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }})
	data, err := c.Folder.Root.ReadFile(s.path(), maxRecord)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read rewards: %w", err)
	}
	for line := range bytes.Lines(data) {
		var r record
		if json.Unmarshal(line, &r) == nil && r.Error == "" {
			s.sent[r.Session] = true
		}
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s, nil
}

func (s *Sender) path() string { return filepath.Join(s.Folder.Dir, datasets.RewardsFile) }

// Event sends the reward of an attempt if the event ends it: the verdict, or the end of an
// attempt that gets none. It does not wait.
func (s *Sender) Event(e runner.Event) {
	key := sample{e.Instance, max(1, e.Repetition)}
	switch {
	case e.WillRetry:
	case e.Type == runner.AttemptFinished && e.Outcome != nil:
		s.mu.Lock()
		s.last[key] = e.Attempt
		s.mu.Unlock()
		if !e.Outcome.Class.IsResult() || !s.IsEvaluated(e.Instance) {
			s.start(key, e.Attempt)
		}
	case e.Type == runner.Verdict:
		s.mu.Lock()
		attempt := s.last[key]
		s.mu.Unlock()
		s.start(key, attempt)
	}
}

// start sends the reward of an attempt in the background. The attempt 0 is the one of an
// earlier session that counts.
func (s *Sender) start(key sample, attempt int) {
	s.wait.Go(func() {
		s.room <- struct{}{}
		defer func() { <-s.room }()
		if err := s.send(key, attempt); err != nil {
			s.Warn(key.instance, fmt.Errorf("send reward: %w", err))
		}
	})
}

// Close waits for the rewards that are being sent, until ctx ends.
func (s *Sender) Close(ctx context.Context) {
	defer context.AfterFunc(ctx, s.stop)()
	s.wait.Wait()
	s.stop()
}

// send posts the reward of an attempt, unless that was done, and records it.
func (s *Sender) send(key sample, attempt int) error {
	item, err := s.read(key, attempt)
	if err != nil {
		return err
	}
	if item == nil || item.Outcome == nil || s.isSent(item.Header.Session) {
		return nil
	}
	r := Reward{
		Instance: key.instance, Attempt: item.Number, Sample: key.repetition, Session: item.Header.Session,
		Class: string(item.Outcome.Class), ExitStatus: item.Outcome.ExitStatus, Verdict: item.Verdict, Reward: item.VerdictReward(),
	}
	r.HasVerdict = r.Reward != nil
	var body bytes.Buffer
	if err := s.Body.Execute(&body, r); err != nil {
		return err
	}
	line := record{
		Instance: r.Instance, Attempt: r.Attempt, Session: r.Session, URL: expand(s.URL, r),
		Class: r.Class, Verdict: r.Verdict, Reward: r.Reward,
	}
	_, err = backoff.Retry(s.ctx, func() (struct{}, error) {
		line.Tries++
		line.Status, err = s.post(line.URL, body.Bytes())
		if err != nil && line.Status >= 400 && line.Status < 500 && line.Status != http.StatusTooManyRequests && line.Status != http.StatusRequestTimeout {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithMaxTries(maxTries))
	if line.Time = time.Now().UTC(); err != nil {
		line.Error = err.Error()
	}
	return errors.Join(err, s.record(line))
}

// read returns an attempt with its verdict; nil if it does not exist.
func (s *Sender) read(key sample, attempt int) (*export.Item, error) {
	run, err := runs.Open(s.Folder.Dir)
	if err != nil {
		return nil, err
	}
	if attempt == 0 {
		if in, ok := run.Find(key.instance); ok {
			for _, r := range in.Repetitions {
				if r.Repetition == key.repetition {
					attempt = r.Attempt
				}
			}
		}
	}
	return source.ReadAttempt(run, key.instance, attempt, s.IsOwn)
}

// isSent marks a session as sent, and reports whether it was before.
func (s *Sender) isSent(session string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.sent[session]
	s.sent[session] = true
	return was
}

// post makes one request. The status is 0 without a reply.
func (s *Sender) post(address string, body []byte) (status int, err error) {
	ctx, cancel := context.WithTimeout(s.ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.HTTP.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()                                         //nolint:errcheck // read below
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxReply)) // so that the connection is used again
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return resp.StatusCode, fmt.Errorf("the server answers %s", resp.Status)
	}
	return resp.StatusCode, nil
}

// record appends a line to rewards.jsonl.
func (s *Sender) record(r record) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := s.Folder.Root.OpenFile(s.path(), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("record reward: %w", err)
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}
