package external_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minibench/mini/agent/bridge"
	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper/child/childtest"
	"github.com/minibench/mini/env/local"
	"github.com/minibench/mini/model"
	"github.com/minibench/mini/model/raw"
)

// openBridge offers a bridge in a local sandbox, and returns its address and token.
func openBridge(tb testing.TB, m model.Model) (address, token string) {
	tb.Helper()
	sandbox, err := local.New(tb.Context(), local.Config{Dir: tb.TempDir(), Helper: childtest.Program(tb)})
	if err != nil {
		tb.Fatal(err)
	}
	b := bridge.New(tb.Context(), bridge.Config{
		Model: m, ModelName: "real", Dialects: []string{"chat"},
		Begin: func(bool) error { return nil }, Record: func(bridge.Exchange) error { return nil },
	})
	ctx, cancel := context.WithCancel(tb.Context())
	addresses, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = sandbox.Execute(ctx, env.Command{ // ends with cancel
			Script: "echo $MINI_BRIDGE; exec sleep 3600", Timeout: time.Hour, Bridge: b.Open,
			OnOutput: func(p []byte) { addresses <- strings.TrimSpace(string(p)) },
		})
	}()
	tb.Cleanup(func() {
		cancel()
		<-ended
		b.Close()
		if err := sandbox.Close(context.WithoutCancel(tb.Context())); err != nil {
			tb.Error(err)
		}
	})
	return <-addresses, b.Token()
}

// provider is an HTTP server with one streamed answer.
func provider(tb testing.TB, answer http.HandlerFunc) string {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s := &http.Server{Handler: answer, ReadHeaderTimeout: time.Minute}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(l) // ends with Close
	}()
	tb.Cleanup(func() {
		_ = s.Close() // connections are idle
		<-served
	})
	return "http://" + l.Addr().String()
}

const chunk = `data: {"id":"x","model":"real","choices":[{"index":0,"delta":{"content":"%s"}}]}` + "\n\n"

const end = `data: {"id":"x","model":"real","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":9}}` + "\n\ndata: [DONE]\n\n"

// post sends a streamed request and reads the answer.
func post(tb testing.TB, client *http.Client, url, token string) int64 {
	tb.Helper()
	body := `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"` + strings.Repeat("x", 2000) + `"}]}`
	req, err := http.NewRequestWithContext(tb.Context(), http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := client.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		tb.Fatalf("status %d, %v", resp.StatusCode, err)
	}
	return n
}

// BenchmarkRequest compares small requests to a provider with those through the bridge.
func BenchmarkRequest(b *testing.B) {
	url := provider(b, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, chunk+end, "hello")
	})
	compare(b, url)
}

// BenchmarkStream compares answers that arrive at about 200 KB/s.
func BenchmarkStream(b *testing.B) {
	event := fmt.Sprintf(chunk, strings.Repeat("y", 920)) // 1 KB
	url := provider(b, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for range 200 {
			<-tick.C
			_, _ = io.WriteString(w, event)
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = io.WriteString(w, end)
	})
	compare(b, url)
}

func compare(b *testing.B, url string) {
	m := raw.New(raw.Config{BaseURL: url + "/v1", Price: price})
	address, token := openBridge(b, m)
	for _, target := range []struct{ name, url string }{{"direct", url}, {"bridge", "http://" + address}} {
		b.Run(target.name, func(b *testing.B) {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			var times []time.Duration
			for b.Loop() {
				start := time.Now()
				b.SetBytes(post(b, client, target.url, token))
				times = append(times, time.Since(start))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(times[len(times)*99/100].Microseconds()), "p99-µs")
		})
	}
}

// TestSlowReaders: connections of an agent do not read their endless answers. The memory
// of this process, which has the provider too, stays bounded.
func TestSlowReaders(t *testing.T) {
	const readers = 8
	event := []byte(fmt.Sprintf(chunk, strings.Repeat("y", 60_000)))
	url := provider(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for r.Context().Err() == nil {
			if _, err := w.Write(event); err != nil {
				return
			}
		}
	})
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	address, token := openBridge(t, raw.New(raw.Config{BaseURL: url + "/v1", Price: price, HTTPClient: client}))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range readers {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 41\r\n\r\n%s", token, `{"model":"m","stream":true,"messages":[]} `); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, make([]byte, 1000)); err != nil { // the answer has begun
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	const perReader = 4 << 20 // bytes: chunks in flight, buffers, and what was assembled of the reply
	if used := int64(after.HeapAlloc) - int64(before.HeapAlloc); used > readers*perReader {
		t.Errorf("%d slow readers use %d bytes", readers, used)
	} else {
		t.Logf("%d slow readers use %d bytes", readers, used)
	}
}
