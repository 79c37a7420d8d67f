package ratelimit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/fake"
	"github.com/minibench/mini/model/openai"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limitedServer is a server with limits on concurrent requests and on requests per minute.
type limitedServer struct {
	maxConcurrent, perMinute int
	tokens                   int64                     // per minute
	reportsLimits            bool                      // reports its limits
	latency                  func(n int) time.Duration // of request n
	refuse                   func(n int) bool          // refuses request n, in addition to the limits
	retryAfter               time.Duration             // Retry-After

	mu       sync.Mutex
	start    time.Time
	inFlight int
	served   []time.Time // accepted requests
	spent    []spent
	refusals []time.Duration // times of refusals, since the start
	answered int
	peak     int
}

// spent is the number of tokens of a request.
type spent struct {
	at time.Time
	n  int64
}

// promptTokens and replyTokens are the tokens of each request.
const promptTokens, replyTokens = 900, 100

// begin accepts or refuses a request.
func (s *limitedServer) begin() (n int, refused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.start.IsZero() {
		s.start = now
	}
	for len(s.served) > 0 && now.Sub(s.served[0]) >= time.Minute {
		s.served = s.served[1:]
	}
	for len(s.spent) > 0 && now.Sub(s.spent[0].at) >= time.Minute {
		s.spent = s.spent[1:]
	}
	var tokens int64
	for _, e := range s.spent {
		tokens += e.n
	}
	n = len(s.served) + 1
	full := s.maxConcurrent > 0 && s.inFlight >= s.maxConcurrent || s.perMinute > 0 && n > s.perMinute || s.tokens > 0 && tokens+promptTokens+replyTokens > s.tokens
	if full {
		s.refusals = append(s.refusals, now.Sub(s.start))
		return n, true
	}
	s.served = append(s.served, now)
	if s.refuse != nil && s.refuse(n) {
		return n, true
	}
	s.spent = append(s.spent, spent{now, promptTokens + replyTokens})
	s.inFlight++
	s.peak = max(s.peak, s.inFlight)
	return n, false
}

func (s *limitedServer) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--
	s.answered++
}

func (s *limitedServer) duration(n int) time.Duration {
	if s.latency == nil {
		return time.Second
	}
	return s.latency(n)
}

// Query implements model.Model without HTTP.
func (s *limitedServer) Query(ctx context.Context, _ []model.Message) (model.Reply, error) {
	n, refused := s.begin()
	reply := model.Reply{Tries: 1}
	if s.reportsLimits {
		reply.RateLimits = model.RateLimits{RequestsPerMinute: int64(s.perMinute), TokensPerMinute: s.tokens}
	}
	if refused {
		time.Sleep(20 * time.Millisecond) // of the bubble's clock
		return reply, &model.Error{Status: model.RateLimited, HTTPStatus: 429, Retryable: true, RetryAfter: s.retryAfter, Err: errors.New("too many")}
	}
	defer s.end()
	select {
	case <-time.After(s.duration(n)):
	case <-ctx.Done():
		return reply, context.Cause(ctx)
	}
	reply.Usage = model.Usage{Prompt: promptTokens, Completion: replyTokens}
	return reply, nil
}

// ServeHTTP is Query over HTTP.
func (s *limitedServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	n, refused := s.begin()
	if s.reportsLimits {
		w.Header().Set("X-RateLimit-Limit-Requests", strconv.Itoa(s.perMinute))
	}
	if refused {
		if s.retryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(s.retryAfter.Seconds())))
		}
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error":{"message":"too many"}}`)
		return
	}
	time.Sleep(s.duration(n)) // of the bubble's clock
	s.end()
	_ = json.NewEncoder(w).Encode(map[string]any{
		"choices": []any{map[string]any{"message": map[string]any{"content": "x"}, "finish_reason": "stop"}},
		"usage":   map[string]any{"prompt_tokens": promptTokens, "completion_tokens": replyTokens},
	})
}

// serve returns a provider that sends its requests to s over HTTP, in a synctest bubble.
func serve(t *testing.T, s http.Handler) model.Model {
	t.Helper()
	l := fake.NewMemoryListener()
	server := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	m, err := openai.New(openai.Config{
		Name: "m", BaseURL: "http://inside/v1",
		HTTPClient: &http.Client{Transport: &http.Transport{DialContext: l.DialContext, DisableKeepAlives: true}},
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, errors.Join(m.Close(), server.Close()))
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	return m
}

// work runs workers that each send a number of requests with pauses, and returns the
// number of failed calls and the duration.
func work(t *testing.T, m model.Model, workers, steps int, between time.Duration) (failed int, took time.Duration) {
	t.Helper()
	start := time.Now()
	var wg sync.WaitGroup
	errs := make([]int, workers)
	for i := range workers {
		wg.Go(func() {
			for step := range steps {
				messages := []model.Message{{Role: model.User, Content: fmt.Sprintf("%3600d", step)}}
				if _, err := m.Query(t.Context(), messages); err != nil {
					errs[i]++
					t.Logf("worker %d, step %d: %v", i, step, err)
				}
				time.Sleep(between)
			}
		})
	}
	wg.Wait()
	for _, n := range errs {
		failed += n
	}
	return failed, time.Since(start)
}
