package serve

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"

	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/runner/verdicts"
)

// verification is an evaluation in progress. All requests for it wait for the same one.
type verification struct {
	over   chan struct{} // closed at the end
	answer *verdict
	err    error
}

// verdict is what POST /verify returns.
type verdict struct {
	Instance string   `json:"instance"`
	Resolved *bool    `json:"resolved"` // null if there is no verdict
	Reward   *float64 `json:"reward"`   // 1, 0 or null, likewise
	// Class is that of the verdict: resolved, unresolved, empty, apply_failed, timed_out, error or unstable; or
	// environment, an accident of the machine, after which a retry runs the tests again.
	Class       string                `json:"class"`
	Reason      string                `json:"reason,omitempty"`
	Hint        string                `json:"hint,omitempty"`
	FailedTests *verdicts.FailedTests `json:"failed_tests,omitempty"`
	Seconds     float64               `json:"seconds"`
	Report      json.RawMessage       `json:"report,omitempty"` // report.json of the official harness
}

// maxReport is the maximum size of a report.json, in bytes.
const maxReport = 32 << 20

// postVerify returns the verdict on a patch. It waits for the end of the tests. The same
// patch is evaluated once; a repeated request returns the verdict that exists.
func (s *server) postVerify(w http.ResponseWriter, r *http.Request, _ string) error {
	var q struct {
		Subset   string          `json:"subset"`
		Instance string          `json:"instance"`
		Row      json.RawMessage `json:"row"`
		Patch    *string         `json:"patch"`
	}
	if err := readBody(w, r, true, &q); err != nil {
		return err
	}
	if (q.Instance == "") == (len(q.Row) == 0) || q.Patch == nil {
		return badRequest("give a patch, and one of instance and row")
	}
	var subset string
	var err error
	if len(q.Row) > 0 {
		subset, err = s.storeRow(q.Row)
		subset = s.path(rowsDir, subset)
	} else {
		subset, err = s.findSubset(q.Subset, q.Instance)
	}
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(subset + "\x00" + q.Instance + "\x00" + *q.Patch))
	dir := s.path(verifyDir, hex.EncodeToString(sum[:16]))
	return s.poll(func() error {
		v, err := s.verification(subset, q.Instance, *q.Patch, dir)
		if err != nil {
			return err
		}
		mayTakeLong(w)
		select {
		case <-v.over:
		case <-r.Context().Done(): // the client has closed the connection, or the service ends
			return errEnds
		}
		if v.err != nil {
			return v.err
		}
		writeJSON(w, http.StatusOK, v.answer)
		return nil
	})
}

// verification starts an evaluation, or returns the one in progress.
func (s *server) verification(subset, instance, patch, dir string) (*verification, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.verified[dir]; ok {
		return v, nil
	}
	switch {
	case s.ctx.Err() != nil:
		return nil, errEnds
	case len(s.verified) >= s.options.queue:
		return nil, &httpError{http.StatusTooManyRequests, fmt.Sprintf("%d patches are evaluated, which is the limit (--queue)", len(s.verified))}
	}
	v := &verification{over: make(chan struct{})}
	s.verified[dir] = v
	s.wait.Go(func() {
		v.answer, v.err = s.verify(subset, instance, patch, dir)
		if v.answer != nil {
			s.metrics.addVerdict(v.answer.Class)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.verified, dir)
		close(v.over)
	})
	return v, nil
}

// verify evaluates a patch.
func (s *server) verify(subset, instance, patch, dir string) (*verdict, error) {
	in, err := s.service.Row(s.ctx, subset, instance)
	if err != nil {
		return nil, badRequest("row: %s", text.Clip(err.Error(), maxField))
	}
	r, err := s.service.Evaluate(s.ctx, subset, in, patch, dir)
	switch {
	case s.ctx.Err() != nil:
		return nil, errEnds
	case errors.As(err, new(*usage.Error)): // the row or the patch cannot be evaluated
		return nil, badRequest("%s", text.Clip(err.Error(), maxField))
	case err != nil:
		return nil, &httpError{http.StatusInternalServerError, text.Clip(err.Error(), maxField)}
	}
	v := &verdict{Instance: in.ID, Class: string(r.Class), Reason: r.Reason, Hint: r.Hint, Seconds: r.Seconds}
	if r.Class == verdicts.Infrastructure {
		v.Class = classEnvironment
		return v, nil
	}
	if r.Class.IsFinal() {
		resolved, reward := r.Class == verdicts.Resolved, 0.0
		if resolved {
			reward = 1
		}
		v.Resolved, v.Reward = &resolved, &reward
	}
	if sub := r.VerdictDir(); sub != "" {
		v.FailedTests, _ = verdicts.ReadFailedTests(dir, sub, in.ID) // the class does not depend on it
		if data, err := s.root.ReadFile(filepath.Join(dir, filepath.FromSlash(sub), "report.json"), maxReport); err == nil && json.Valid(data) {
			v.Report = data
		}
	}
	return v, nil
}
