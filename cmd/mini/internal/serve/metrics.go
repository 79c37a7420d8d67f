package serve

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// metrics counts what the service has done since its start. Its methods are safe for
// concurrent use.
type metrics struct {
	mu          sync.Mutex
	requests    map[int]int   // responses by status
	rollouts    map[state]int // that have ended
	attempts    map[string]int
	rewards     map[string]int
	verdicts    map[string]int
	cost        float64
	seconds     float64 // of attempts
	writeErrors int
}

func newMetrics() metrics {
	return metrics{
		requests: map[int]int{}, rollouts: map[state]int{}, attempts: map[string]int{}, rewards: map[string]int{}, verdicts: map[string]int{},
	}
}

func (m *metrics) addRequest(status int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests[status]++
}

func (m *metrics) addVerdict(class string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.verdicts[class]++
}

func (m *metrics) addWriteError() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writeErrors++
}

// add counts a rollout that has ended.
func (m *metrics) add(a answer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rollouts[a.State]++
	for _, attempt := range a.Attempts {
		m.attempts[attempt.Class]++
		m.cost += attempt.Cost
		m.seconds += attempt.Seconds
		reward := "null"
		if attempt.Reward != nil {
			reward = strconv.FormatFloat(*attempt.Reward, 'g', 3, 64)
		}
		if len(m.rewards) < 100 || m.rewards[reward] > 0 { // Harbor tasks may have any number
			m.rewards[reward]++
		}
	}
}

// getMetrics writes the metrics in the text format of Prometheus.
func (s *server) getMetrics(w http.ResponseWriter, _ *http.Request, _ string) error {
	var b strings.Builder
	metric := func(name, kind, help string) { fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind) }
	waitingAttempts, waitingEvaluations := s.service.Pool().Waiting()
	s.mu.Lock()
	open, verifying := slices.Collect(maps.Values(s.rollouts)), len(s.verified)
	s.mu.Unlock()
	current := map[state]int{}
	for _, r := range open {
		current[r.now().State]++
	}
	s.metrics.mu.Lock()
	states := maps.Clone(s.metrics.rollouts)
	for name, n := range current {
		states[name] += n
	}
	metric("mini_rollouts", "gauge", "Rollouts by state; those that have ended since the start of the service.")
	writeCounts(&b, "mini_rollouts", "state", states)
	metric("mini_attempts_total", "counter", "Attempts that have ended, by the class of their outcome.")
	writeCounts(&b, "mini_attempts_total", "class", s.metrics.attempts)
	metric("mini_rewards_total", "counter", "Attempts that have ended, by reward; null is an attempt without a verdict.")
	writeCounts(&b, "mini_rewards_total", "reward", s.metrics.rewards)
	metric("mini_verifications_total", "counter", "Requests of POST /verify that have been evaluated, by class.")
	writeCounts(&b, "mini_verifications_total", "class", s.metrics.verdicts)
	metric("mini_http_responses_total", "counter", "Responses by status.")
	writeCounts(&b, "mini_http_responses_total", "status", s.metrics.requests)
	metric("mini_cost_dollars_total", "counter", "Known cost of the attempts in US dollars.")
	fmt.Fprintf(&b, "mini_cost_dollars_total %g\n", s.metrics.cost)
	metric("mini_attempt_seconds_total", "counter", "Time that attempts took, from their start to their outcome.")
	fmt.Fprintf(&b, "mini_attempt_seconds_total %g\n", s.metrics.seconds)
	metric("mini_write_errors_total", "counter", "Files of rollouts that could not be written.")
	fmt.Fprintf(&b, "mini_write_errors_total %d\n", s.metrics.writeErrors)
	s.metrics.mu.Unlock()
	metric("mini_waiting", "gauge", "Jobs that wait for a worker, and verifications in progress.")
	fmt.Fprintf(&b, "mini_waiting{lane=\"attempts\"} %d\nmini_waiting{lane=\"evaluations\"} %d\n", waitingAttempts, waitingEvaluations)
	metric("mini_verifying", "gauge", "Verifications in progress.")
	fmt.Fprintf(&b, "mini_verifying %d\n", verifying)
	if rss := residentMemory(); rss > 0 {
		metric("process_resident_memory_bytes", "gauge", "Resident memory of the service.")
		fmt.Fprintf(&b, "process_resident_memory_bytes %d\n", rss)
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write([]byte(b.String()))
	return nil
}

// writeCounts writes a line for each value of a label, in their order.
func writeCounts[K ~string | ~int](b *strings.Builder, name, label string, counts map[K]int) {
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(b, "%s{%s=%q} %d\n", name, label, fmt.Sprint(key), counts[key])
	}
}

// residentMemory returns the memory of this process in bytes; 0 if it is unknown.
func residentMemory() int {
	data, err := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(data))
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.Atoi(fields[1])
	return pages * os.Getpagesize()
}
