//go:build kubernetes

package kubetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"
	"github.com/gorilla/websocket"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/remotecommand"
)

// session is the connection of one exec with its streams. Streams that the client did
// not ask for read nothing and discard what is written.
type session struct {
	ended  <-chan struct{} // closed at the end of the connection
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
	// finish sends the status and waits, for a limited time, until the client has
	// received everything and closes the connection.
	finish func(status []byte)
}

// finishTimeout is how long a client may take to close its connection.
const finishTimeout = 10 * time.Second

type execOptions struct {
	command               []string
	stdin, stdout, stderr bool
}

func parseExecOptions(q url.Values) (execOptions, error) {
	o := execOptions{command: q["command"]}
	for name, p := range map[string]*bool{"stdin": &o.stdin, "stdout": &o.stdout, "stderr": &o.stderr} {
		*p, _ = strconv.ParseBool(q.Get(name)) // empty is false
	}
	switch {
	case len(o.command) == 0:
		return o, errors.New("you must specify the command")
	case !o.stdin && !o.stdout && !o.stderr:
		return o, errors.New("you must specify at least one of stdin, stdout, stderr")
	}
	return o, nil
}

type connKey struct{}

// withConn makes the connection available to handlers, so that it can be cut.
func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

func (c *Cluster) execHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/api/v1/namespaces/{namespace}/pods/{name}/exec", func(w http.ResponseWriter, r *http.Request) {
		conn, ok := r.Context().Value(connKey{}).(net.Conn)
		if !ok {
			panic("kubetest: the server has no ConnContext")
		}
		// Closing the server does not wait for hijacked connections.
		c.mu.Lock()
		c.wg.Add(1)
		c.conns[conn] = struct{}{}
		c.mu.Unlock()
		defer c.wg.Done()
		defer func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			delete(c.conns, conn)
		}()
		c.serveExec(w, r, conn)
	})
	return mux
}

func (c *Cluster) serveExec(w http.ResponseWriter, r *http.Request, conn net.Conn) {
	verb := "create"
	if r.Method == http.MethodGet {
		verb = "get"
	}
	if !c.admit(verb, "pods", "exec") {
		writeError(w, errDown)
		return
	}
	p, id, err := c.execTarget(types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")})
	if err != nil {
		writeError(w, err)
		return
	}
	o, badOptions := parseExecOptions(r.URL.Query())
	if badOptions != nil {
		writeError(w, apierrors.NewBadRequest(badOptions.Error()))
		return
	}
	accept := c.acceptSPDY
	if websocket.IsWebSocketUpgrade(r) {
		accept = c.acceptWebSocket
	}
	s := accept(r.Context(), w, r, o)
	if s == nil {
		return // the response has been written
	}
	defer conn.Close() //nolint:errcheck // it may be closed
	status := c.exec(r.Context(), s, p, id, o)
	if status == nil {
		return // the stream is cut, or the container is gone
	}
	b, marshalErr := json.Marshal(status)
	if marshalErr != nil {
		c.t.Errorf("encode status: %v", marshalErr)
	}
	s.finish(b)
}

// execTarget returns the container of a running pod.
func (c *Cluster) execTarget(key types.NamespacedName) (*pod, string, *apierrors.StatusError) {
	obj, err := c.fake.Tracker().Get(podResource, key.Namespace, key.Name)
	if err != nil {
		return nil, "", apierrors.NewNotFound(podResource.GroupResource(), key.Name)
	}
	object, ok := obj.(*v1.Pod)
	if !ok || object.Spec.NodeName == "" {
		return nil, "", apierrors.NewBadRequest(fmt.Sprintf("pod %s does not have a host assigned", key.Name))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pods[key]
	if p == nil || p.container == "" {
		return nil, "", apierrors.NewInternalError(fmt.Errorf("unable to upgrade connection: container not found (%q)", object.Spec.Containers[0].Name))
	}
	return p, p.container, nil
}

func writeError(w http.ResponseWriter, err *apierrors.StatusError) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(err.ErrStatus.Code))
	status := err.ErrStatus
	status.Kind, status.APIVersion = "Status", "v1"
	_ = json.NewEncoder(w).Encode(status) // the client may be gone
}

// exec runs a command in a container and copies its streams. It returns the final
// status, or nil if the session or the container ended before the command.
func (c *Cluster) exec(ctx context.Context, s *session, p *pod, id string, o execOptions) *metav1.Status {
	created, err := c.docker.ContainerExecCreate(context.WithoutCancel(ctx), id, container.ExecOptions{
		Cmd: o.command, AttachStdin: o.stdin, AttachStdout: o.stdout, AttachStderr: o.stderr,
	})
	if err != nil {
		return internalError(err)
	}
	attached, err := c.docker.ContainerExecAttach(context.WithoutCancel(ctx), created.ID, container.ExecAttachOptions{})
	if err != nil {
		return internalError(err)
	}
	defer attached.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.wg.Go(func() {
		select {
		case <-s.ended:
			cancel()
		case <-p.done:
			cancel() // the engine does not end all streams of a container that is removed
		case <-ctx.Done():
		}
	})
	defer context.AfterFunc(ctx, attached.Close)()
	c.wg.Go(func() {
		_, _ = io.Copy(attached.Conn, s.stdin) // ends with the command
		_ = attached.CloseWrite()
		_, _ = io.Copy(io.Discard, s.stdin) // what is not read blocks the other streams
	})
	_, err = stdcopy.StdCopy(s.stdout, s.stderr, attached.Reader)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return internalError(err)
	}
	return c.exitStatus(ctx, created.ID)
}

// exitStatus waits for the end of a command whose output has ended.
func (c *Cluster) exitStatus(ctx context.Context, exec string) *metav1.Status {
	for {
		info, err := c.docker.ContainerExecInspect(context.WithoutCancel(ctx), exec)
		switch {
		case err != nil:
			return internalError(err)
		case !info.Running && info.ExitCode == 0:
			return &metav1.Status{Status: metav1.StatusSuccess}
		case !info.Running:
			return &metav1.Status{
				Status:  metav1.StatusFailure,
				Reason:  remotecommand.NonZeroExitCodeReason,
				Message: fmt.Sprintf("command terminated with non-zero exit code: exit status %d", info.ExitCode),
				Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{
					Type: remotecommand.ExitCodeCauseType, Message: strconv.Itoa(info.ExitCode),
				}}},
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(2 * time.Millisecond): // the engine learns of the end later
		}
	}
}

func internalError(err error) *metav1.Status {
	status := apierrors.NewInternalError(fmt.Errorf("error executing command in container: %w", err)).Status()
	return &status
}
