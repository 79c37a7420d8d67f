//go:build kubernetes && kubernetes_live

package kubernetes

import (
	"bufio"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/env/helper/binaries"
	"github.com/minibench/mini/env/helper/link"
	"github.com/minibench/mini/internal/assert"
	"github.com/minibench/mini/internal/require"
)

// simulateVariable makes the test program simulate the pods of TestLiveMemory; it has
// the hash of their helper.
const simulateVariable = "MINI_TEST_SIMULATE_PODS"

func init() {
	if os.Getenv(simulateVariable) != "" {
		simulatePods()
		os.Exit(0)
	}
}

// TestLiveMemory measures the memory of a process with 500 sandboxes, which another
// process simulates behind an exec server with TLS.
func TestLiveMemory(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), program)
	_, hash, err := binaries.Load("", "amd64")
	require.NoError(t, err)
	cmd.Env = append(os.Environ(), simulateVariable+"="+hash)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer func() { _ = stdin.Close(); _ = cmd.Wait() }()
	var address struct{ URL, Certificate string }
	require.NoError(t, json.NewDecoder(bufio.NewReader(stdout)).Decode(&address))
	client := fake.NewClientset()
	client.PrependReactor("create", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		pod := a.(clienttesting.CreateAction).GetObject().(*corev1.Pod)
		pod.Status = corev1.PodStatus{
			Phase:             corev1.PodRunning,
			Conditions:        []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: containerName, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		}
		return false, nil, nil
	})
	c, err := newCluster(Settings{}, client, &rest.Config{
		Host: address.URL, TLSClientConfig: rest.TLSClientConfig{CAData: []byte(address.Certificate)},
	}, "default")
	require.NoError(t, err)
	defer c.Close() //nolint:errcheck // simulated
	const n = 500
	before := residentMB(t)
	pods := make([]*Pod, n)
	var group errgroup.Group
	group.SetLimit(50)
	for i := range pods {
		group.Go(func() (err error) {
			pods[i], err = c.Start(t.Context(), Config{Image: "x", Network: networkBridge})
			return err
		})
	}
	require.NoError(t, group.Wait())
	for round := range 3 {
		for _, p := range pods {
			group.Go(func() error {
				_, err := p.Execute(t.Context(), env.Command{Script: "true"})
				return err
			})
		}
		require.NoError(t, group.Wait())
		t.Logf("%d sandboxes, %d commands each: %d MB resident, %d MB before", n, round+1, residentMB(t), before)
	}
	for _, p := range pods {
		group.Go(func() error { return p.Close(t.Context()) })
	}
	assert.NoError(t, group.Wait())
}

func residentMB(t *testing.T) (mb int) {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	for line := range strings.Lines(string(b)) {
		if text, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			if _, err := fmt.Sscan(text, &mb); err != nil {
				t.Fatal(err)
			}
		}
	}
	return mb / 1024
}

// simulatePods serves exec requests with helpers that answer every command at once.
func simulatePods() {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		upgrader := websocket.Upgrader{Subprotocols: []string{"v5.channel.k8s.io"}}
		socket, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		conn := link.NewServer()
		go answer(conn)
		_ = conn.Run(&channelConn{socket: socket}, nil) // ends with the client
	}))
	defer server.Close()
	_ = json.NewEncoder(os.Stdout).Encode(map[string]string{
		"URL":         server.URL,
		"Certificate": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})),
	})
	_, _ = os.Stdin.Read(make([]byte, 1)) // the end of the test
}

// channelConn is the standard input and output of an exec request.
type channelConn struct {
	socket *websocket.Conn
	rest   []byte
}

func (c *channelConn) Read(p []byte) (int, error) {
	for len(c.rest) == 0 {
		_, message, err := c.socket.ReadMessage()
		if err != nil {
			return 0, err
		}
		c.rest = message[1:] // after the channel
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (c *channelConn) Write(p []byte) (int, error) {
	return len(p), c.socket.WriteMessage(websocket.BinaryMessage, append([]byte{1}, p...))
}

func (c *channelConn) Close() error { return c.socket.Close() }

// answer is a helper.
func answer(conn *link.Conn) {
	reader := bufio.NewReader(conn)
	for {
		f, err := helper.ReadFrame(reader, helper.MaxClientFrame)
		if err != nil {
			return
		}
		switch f.Kind {
		case helper.KindSetup:
			hash := os.Getenv(simulateVariable)
			body, _ := json.Marshal(helper.Hello{Version: helper.Version, Hash: hash, Shell: "/bin/bash", Machine: "x86_64"})
			_ = helper.WriteFrame(conn, helper.Frame{Kind: helper.KindHello, Body: body})
		case helper.KindRun:
			body, _ := json.Marshal(helper.Exit{})
			_ = helper.WriteFrame(conn, helper.Frame{Kind: helper.KindExit, ID: f.ID, Body: body})
		}
	}
}
