package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/cmd/mini/internal/bench"
	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/internal/text"
)

// state is the state of a rollout.
type state string

const (
	queued    state = "queued"
	running   state = "running"
	needsKey  state = "needs_key" // its key ended with an earlier service; PUT /rollouts/{id}/key gives it again
	done      state = "done"
	cancelled state = "cancelled"
	failed    state = "failed" // Error says why; the attempts have no result
)

func (s state) isOver() bool { return s == done || s == cancelled || s == failed }

// record is the file of a rollout, with all that another service needs to continue it.
type record struct {
	ID      string  `json:"id"`
	Client  string  `json:"client"`
	Request request `json:"request"`            // without the key and the row
	RowFile string  `json:"row_file,omitempty"` // the row, in the folder of rows
	HasKey  bool    `json:"has_key,omitempty"`
	// EndsWithClient is set if only one request waits for the result, so that the next service does not
	// continue it.
	EndsWithClient bool       `json:"ends_with_client,omitempty"`
	Hash           string     `json:"request_sha256"`
	State          state      `json:"state"`
	Error          string     `json:"error,omitempty"`
	Created        time.Time  `json:"created"`
	Started        *time.Time `json:"started,omitempty"`
	Ended          *time.Time `json:"ended,omitempty"`
}

// rollout is a rollout that has not ended.
type rollout struct {
	client string
	subset string        // for bench.Request
	key    *string       // changed only before the rollout starts
	over   chan struct{} // closed at the end

	mu     sync.Mutex // guards what follows, also while the file is written
	record record
	cancel context.CancelCauseFunc
}

// now returns the record as it is.
func (r *rollout) now() record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.record
}

var (
	errStopped = fmt.Errorf("%w: the service ends", agent.ErrInterrupted)
	errDeleted = fmt.Errorf("%w: deleted by the client", agent.ErrInterrupted)
)

var validID = lazyregexp.New(`^[a-z0-9]{1,40}$`)

// Folders and files below the folder of the service.
const (
	rolloutsDir = "rollouts" // run folders
	requestsDir = "requests" // records
	rowsDir     = "rows"
	verifyDir   = "verify"
)

func (s *server) path(parts ...string) string {
	return filepath.Join(append([]string{s.root.Path()}, parts...)...)
}

func (s *server) recordPath(id string) string { return s.path(requestsDir, id+".json") }

// maxRecord is the maximum size of the file of a rollout, in bytes.
const maxRecord = maxBody + 64<<10

// accept starts a rollout, or returns the one that the same client has started with the
// same idempotency key.
func (s *server) accept(ctx context.Context, client, idempotencyKey string, q request) (rec record, isNew bool, err error) {
	if err := q.check(); err != nil {
		return record{}, false, err
	}
	if !s.service.HasModel() && (q.Model == "") != (q.BaseURL == "") {
		return record{}, false, badRequest("give both of model and base_url; this service has no model of its own")
	}
	r := &rollout{record: record{
		ID: strings.ToLower(rand.Text()), Client: client, Hash: q.hash(), HasKey: q.APIKey != "", EndsWithClient: q.endsWithClient, State: queued, Created: time.Now().UTC(),
	}, client: client, over: make(chan struct{})}
	if idempotencyKey != "" {
		sum := sha256.Sum256([]byte(client + "\x00" + idempotencyKey))
		r.record.ID = hex.EncodeToString(sum[:16])
		if old, err := s.find(r.record.ID); err == nil {
			return repeated(old, r.record)
		}
	}
	if s.service.Pool().IsBudgetSpent() {
		return record{}, false, &httpError{http.StatusForbidden, "the budget of this service is spent"}
	}
	if q.BaseURL != "" {
		key := q.APIKey
		r.key = &key
		q.APIKey = ""
	}
	r.record.Request = q
	if err := s.turn.Acquire(ctx, 1); err != nil {
		return record{}, false, err
	}
	err = s.prepare(ctx, r)
	s.turn.Release(1)
	if err != nil {
		return record{}, false, err
	}
	r.mu.Lock() // until it is stored
	defer r.mu.Unlock()
	if other, err := s.add(r); err != nil {
		return record{}, false, err
	} else if other != nil { // posted twice at the same time
		return repeated(other.now(), r.record)
	}
	if err := s.save(r.record); err != nil {
		s.forget(r.record.ID)
		return record{}, false, err
	}
	s.start(r) //nolint:contextcheck // it outlives the request
	return r.record, true, nil
}

// repeated returns the rollout that a client has started before, if it asks for the same.
func repeated(old, again record) (record, bool, error) {
	if old.Hash != again.Hash {
		return record{}, false, &httpError{http.StatusConflict, "the idempotency key belongs to another request"}
	}
	return old, false, nil
}

// add adds a rollout to those that have not ended, within the limits. It returns the one
// with the same id, if there is one.
func (s *server) add(r *rollout) (other *rollout, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, client := r.record.ID, r.record.Client
	switch {
	case s.rollouts[id] != nil:
		return s.rollouts[id], nil
	case s.ctx.Err() != nil:
		return nil, errEnds
	case len(s.rollouts) >= s.options.queue:
		return nil, &httpError{http.StatusTooManyRequests, fmt.Sprintf("%d rollouts wait or run, which is the limit (--queue)", len(s.rollouts))}
	case s.perClient[client] >= s.options.perClient:
		return nil, &httpError{http.StatusTooManyRequests, fmt.Sprintf("%d rollouts of this client wait or run, which is its limit (--per-client)", s.perClient[client])}
	}
	s.rollouts[id] = r
	s.perClient[client]++
	return nil, nil //nolint:nilnil // as the comment says
}

// forget removes a rollout from those that have not ended.
func (s *server) forget(id string) (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.rollouts[id]
	if ok {
		delete(s.rollouts, id)
		s.perClient[r.client]--
	}
	return ok
}

// open returns a rollout that has not ended, or nil.
func (s *server) open(id string) *rollout {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rollouts[id]
}

// prepare checks that the rollout can run, and stores a row of its request as a dataset.
func (s *server) prepare(ctx context.Context, r *rollout) (err error) {
	q := &r.record.Request
	switch {
	case q.Task != "":
		if q.Task, err = s.taskFolder(q.Task); err != nil {
			return err
		}
		r.subset = q.Task
	case len(q.Row) > 0:
		if r.record.RowFile, err = s.storeRow(q.Row); err != nil {
			return err
		}
		q.Row = nil // many rows would fill the memory
		r.subset = s.path(rowsDir, r.record.RowFile)
	case r.record.RowFile != "":
		r.subset = s.path(rowsDir, r.record.RowFile)
	default:
		if r.subset, err = s.findSubset(q.Subset, q.Instance); err != nil {
			return err
		}
	}
	j, err := s.job(ctx, r)
	if err != nil {
		return badRequest("%s", text.Clip(err.Error(), maxField))
	}
	if n := len(j.Input.Rows); n != 1 {
		return badRequest("task: the folder has %d tasks; name the folder of one", n)
	}
	if q.Instance == "" {
		q.Instance = j.Input.Rows[0].ID
	}
	return nil
}

// storeRow writes a row as a dataset of its own, and returns the name of the file.
func (s *server) storeRow(row json.RawMessage) (string, error) {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(row, &object); err != nil {
		return "", badRequest("row: want a JSON object with the columns of SWE-bench")
	}
	data, _ := json.Marshal(object) // it was JSON
	sum := sha256.Sum256(data)
	name := hex.EncodeToString(sum[:16]) + ".jsonl"
	if _, err := s.root.Lstat(s.path(rowsDir, name)); err == nil {
		return name, nil
	}
	return name, s.root.WriteFile(s.path(rowsDir, name), append(data, '\n'))
}

// job returns the job of a rollout.
func (s *server) job(ctx context.Context, r *rollout) (*bench.Job, error) {
	q := r.record.Request // it does not change once the rollout is accepted
	layers, err := q.settings()
	if err != nil {
		return nil, err
	}
	request := bench.Request{Subset: r.subset, Settings: layers, Key: r.key, Dir: s.path(rolloutsDir, r.record.ID)}
	if q.Task == "" && r.record.RowFile == "" {
		request.Instance = q.Instance
	}
	return s.service.Job(ctx, request)
}

// start runs a rollout when there is room. The caller holds the rollout's lock.
func (s *server) start(r *rollout) {
	ctx, cancel := context.WithCancelCause(s.ctx)
	r.cancel = cancel
	s.wait.Go(func() {
		defer cancel(nil)
		err := s.room.Acquire(ctx, 1)
		if err == nil {
			now := time.Now().UTC()
			s.update(r, func(rec *record) { rec.State, rec.Started = running, &now })
			err = s.runJob(ctx, r)
			s.room.Release(1)
		}
		s.end(ctx, r, err)
	})
}

func (s *server) runJob(ctx context.Context, r *rollout) error {
	j, err := s.job(ctx, r)
	if err != nil {
		return err
	}
	return s.service.RunJob(ctx, j)
}

// end stores how a rollout has ended. One that the end of the service has interrupted stays
// queued.
func (s *server) end(ctx context.Context, r *rollout, err error) {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errDeleted):
		s.finish(r, cancelled, "")
	case ctx.Err() != nil:
		close(r.over)
	case err != nil:
		s.finish(r, failed, text.Clip(s.redact(r, err.Error()), maxField))
	default:
		s.finish(r, done, "")
	}
}

// redact removes the key of a rollout from a text.
func (s *server) redact(r *rollout, message string) string {
	if r.key != nil && *r.key != "" {
		message = strings.ReplaceAll(message, *r.key, "[key]")
	}
	return message
}

// finish stores the last state of a rollout and forgets its key.
func (s *server) finish(r *rollout, last state, message string) {
	now := time.Now().UTC()
	rec := s.update(r, func(rec *record) { rec.State, rec.Error, rec.Ended = last, message, &now })
	s.metrics.add(s.result(rec, noTokens))
	s.forget(rec.ID)
	close(r.over)
}

// update changes the record of a rollout and stores it.
func (s *server) update(r *rollout, change func(*record)) record {
	r.mu.Lock()
	defer r.mu.Unlock()
	change(&r.record)
	if err := s.save(r.record); err != nil {
		s.metrics.addWriteError() // the run folder has the results, and a restart runs nothing again
	}
	return r.record
}

// save writes the file of a rollout.
func (s *server) save(rec record) error {
	data, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	if err := s.root.WriteFile(s.recordPath(rec.ID), append(data, '\n')); err != nil {
		return fmt.Errorf("store rollout: %w", err)
	}
	return nil
}

// find returns the record of a rollout.
func (s *server) find(id string) (record, error) {
	notFound := &httpError{http.StatusNotFound, "there is no such rollout"}
	if !validID.MatchString(id) {
		return record{}, notFound
	}
	if r := s.open(id); r != nil {
		return r.now(), nil
	}
	rec, err := s.read(id)
	if errors.Is(err, fs.ErrNotExist) {
		return record{}, notFound
	}
	return rec, err
}

func (s *server) read(id string) (rec record, err error) {
	data, err := s.root.ReadFile(s.recordPath(id), maxRecord)
	if err == nil {
		err = json.Unmarshal(data, &rec)
	}
	if err != nil {
		return record{}, fmt.Errorf("read rollout %s: %w", id, err)
	}
	return rec, nil
}

// await waits until a rollout has ended, or for at most a time.
func (s *server) await(ctx context.Context, id string, limit time.Duration) (record, error) {
	if r := s.open(id); r != nil {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		select {
		case <-r.over:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return s.find(id)
}

// delete ends a rollout with its sandboxes.
func (s *server) delete(ctx context.Context, id string) (record, error) {
	r := s.open(id)
	if r == nil {
		return s.find(id)
	}
	r.mu.Lock()
	cancel, hasWorker := r.cancel, r.cancel != nil
	if !hasWorker { // it waits for its key; setKey may not start it any more
		r.record.State = cancelled
	}
	r.mu.Unlock()
	if hasWorker {
		cancel(errDeleted)
	} else if s.forget(id) { // not by another request
		s.finish(r, cancelled, "")
	}
	return s.await(ctx, id, maxWait)
}

// setKey gives a rollout the key that it had before the service was restarted.
func (s *server) setKey(id, key string) error {
	if key == "" || len(key) > maxField {
		return badRequest("api_key: want the key of the request, at most %d bytes", maxField)
	}
	r := s.open(id)
	if r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
	}
	if r == nil || r.record.State != needsKey {
		return &httpError{http.StatusConflict, "the rollout waits for no key"}
	}
	r.key, r.record.State = &key, queued
	s.start(r)
	return s.save(r.record)
}

// restore continues the rollouts that an earlier service has accepted, oldest first.
func (s *server) restore() (continued int, err error) {
	entries, err := s.root.ReadDir(s.path(requestsDir))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, s.root.MkdirAll(s.path(requestsDir))
	}
	if err != nil {
		return 0, err
	}
	var open []*rollout
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || !validID.MatchString(id) {
			continue
		}
		rec, err := s.read(id)
		if err != nil {
			return 0, err
		}
		if rec.ID == id && !rec.State.isOver() {
			open = append(open, &rollout{record: rec, client: rec.Client, over: make(chan struct{})})
		}
	}
	slices.SortFunc(open, func(a, b *rollout) int {
		return cmp.Or(a.record.Created.Compare(b.record.Created), strings.Compare(a.record.ID, b.record.ID))
	})
	for _, r := range open {
		if r.record.Request.BaseURL != "" {
			none := ""
			r.key = &none
		}
		s.mu.Lock()
		s.rollouts[r.record.ID] = r
		s.perClient[r.client]++
		s.mu.Unlock()
		if r.record.EndsWithClient {
			s.finish(r, cancelled, "")
			continue
		}
		if err := s.prepare(s.ctx, r); err != nil {
			return 0, fmt.Errorf("continue rollout %s: %w; start with the same datasets and settings as the service before, or move %s away",
				r.record.ID, err, s.recordPath(r.record.ID))
		}
		continued++
		if s.lacksKey(r) {
			s.update(r, func(rec *record) { rec.State = needsKey })
			continue
		}
		s.update(r, func(rec *record) { rec.State = queued })
		r.mu.Lock()
		s.start(r)
		r.mu.Unlock()
	}
	return continued, nil
}

// lacksKey reports whether attempts are left that need the key of the request.
func (s *server) lacksKey(r *rollout) bool {
	if !r.record.HasKey {
		return false
	}
	j, err := s.job(s.ctx, r)
	return err != nil || !j.IsDone()
}
