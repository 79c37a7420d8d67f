package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/minibench/mini/datasets/demo"
)

const serveToken = "token-of-the-benchmark"

// benchService is a process of mini serve.
type benchService struct {
	b   *testing.B
	url string
	pid int
}

func startService(b *testing.B, args ...string) *benchService {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), "../../bin/mini", append([]string{"serve", "--listen", "127.0.0.1:0", "-o", filepath.Join(b.TempDir(), "serve")}, args...)...)
	home := b.TempDir()
	cmd.Env = append(os.Environ(), "MINI_SERVE_TOKEN="+serveToken, "HOME="+home, "XDG_STATE_HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = cmd.Wait()
	})
	s, lines := &benchService{b: b, pid: cmd.Process.Pid}, bufio.NewScanner(stderr)
	for s.url == "" && lines.Scan() {
		s.url = regexp.MustCompile(`http://[0-9.:]+`).FindString(lines.Text())
	}
	go func() {
		for lines.Scan() {
		}
	}()
	if s.url == "" {
		b.Fatal("mini serve did not start")
	}
	return s
}

// ask sends a request and returns the reply.
func (s *benchService) ask(method, path string, body any) (reply map[string]any, err error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(s.b.Context(), method, s.url+path, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+serveToken)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if err = json.NewDecoder(resp.Body).Decode(&reply); err == nil && resp.StatusCode > 299 {
		err = fmt.Errorf("%s %s: %s: %v", method, path, resp.Status, reply)
	}
	return reply, err
}

// memory returns the resident memory of the service in MB.
func (s *benchService) memory() float64 {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.pid))
	fields := strings.Fields(string(data))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.Atoi(fields[1])
	return float64(pages*os.Getpagesize()) / 1e6
}

// parallel calls work for 0 to n-1 at the same time.
func parallel(n int, work func(i int)) {
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() { work(i) })
	}
	wait.Wait()
}

// BenchmarkServe posts 500 rollouts at once to mini serve with 16 workers, on the demo in
// containers. It measures the memory of the service and the slowest of the GET /health that
// are asked meanwhile. It takes some ten minutes.
func BenchmarkServe(b *testing.B) {
	const rollouts = 500
	instances := []string{"minidemo__ledger-17", "minidemo__foldtext-8", "minidemo__spans-23", "minidemo__keepsake-5"}
	for b.Loop() {
		s := startService(b, "--subset", "demo", "-w", "16")
		var stop atomic.Bool
		var health []float64
		var memory float64
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			for !stop.Load() {
				start := time.Now()
				if _, err := s.ask("GET", "/health", nil); err != nil {
					b.Error(err)
				}
				health, memory = append(health, milliseconds(time.Since(start))), max(memory, s.memory())
				time.Sleep(20 * time.Millisecond)
			}
		}()
		start := time.Now()
		parallel(rollouts, func(i int) {
			reply, err := s.ask("POST", "/rollouts", map[string]any{"instance": instances[i%len(instances)]})
			for err == nil && (reply["state"] == "queued" || reply["state"] == "running") {
				reply, err = s.ask("GET", fmt.Sprintf("/rollouts/%s?wait=60", reply["id"]), nil)
			}
			if err != nil || reply["state"] != "done" {
				b.Errorf("%v, %v", reply, err)
			}
		})
		b.ReportMetric(rollouts/time.Since(start).Seconds(), "rollouts/s")
		stop.Store(true)
		<-watched
		slices.Sort(health)
		b.ReportMetric(health[len(health)-1], "ms-health")
		b.ReportMetric(health[len(health)*99/100], "ms-health-p99")
		b.ReportMetric(memory, "MB")
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkVerify compares the rate of POST /verify with that of mini eval with as many
// workers, on patches for the demo that have no verdict yet.
func BenchmarkVerify(b *testing.B) {
	const copies, workers = 4, "2"
	type prediction struct {
		Instance string `json:"instance_id"`
		Model    string `json:"model_name_or_path"`
		Patch    string `json:"model_patch"`
	}
	var demoRows []map[string]any
	for line := range bytes.Lines(demo.Rows()) {
		var row map[string]any
		if err := json.Unmarshal(line, &row); err != nil {
			b.Fatal(err)
		}
		demoRows = append(demoRows, row)
	}
	for b.Loop() {
		dir := b.TempDir()
		var lines, predictions bytes.Buffer
		var all []prediction
		for i := range copies {
			for _, row := range demoRows {
				row = maps.Clone(row)
				row["instance_id"] = fmt.Sprintf("%v%d", row["instance_id"], i)
				all = append(all, prediction{fmt.Sprint(row["instance_id"]), "m", fmt.Sprint(row["patch"])})
				for out, v := range map[*bytes.Buffer]any{&lines: row, &predictions: all[len(all)-1]} {
					if err := json.NewEncoder(out).Encode(v); err != nil {
						b.Fatal(err)
					}
				}
			}
		}
		preds, rows := filepath.Join(dir, "preds.jsonl"), filepath.Join(dir, "rows.jsonl")
		for path, data := range map[string][]byte{preds: predictions.Bytes(), rows: lines.Bytes()} {
			if err := os.WriteFile(path, data, 0o600); err != nil {
				b.Fatal(err)
			}
		}
		start := time.Now()
		out, err := exec.CommandContext(b.Context(), "../../bin/mini", "eval", "--subset", rows, "-p", preds, "-w", workers, "-o", filepath.Join(dir, "eval")).CombinedOutput()
		evalTime := time.Since(start)
		if err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		s := startService(b, "--subset", rows, "--eval-workers", workers)
		start = time.Now()
		parallel(len(all), func(i int) {
			reply, err := s.ask("POST", "/verify", map[string]string{"instance": all[i].Instance, "patch": all[i].Patch})
			if err != nil || reply["class"] != "resolved" {
				b.Errorf("%v, %v", reply, err)
			}
		})
		b.ReportMetric(float64(len(all))/time.Since(start).Seconds(), "patches/s")
		b.ReportMetric(100*evalTime.Seconds()/time.Since(start).Seconds(), "%eval")
	}
	b.ReportMetric(0, "ns/op")
}
