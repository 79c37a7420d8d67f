//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper"
	"github.com/minibench/mini/env/helper/link"
)

// Start starts a sandbox. It waits while the quota is used up, and for a node; the
// caller's clock of the attempt does not run yet. The error is the cause of ctx or an
// *env.Error; its status is SandboxRefused, and it wraps *env.ConfigError values, if the
// configuration is wrong or the cluster refuses it. If Start fails, it deletes the pod.
func (c *Cluster) Start(ctx context.Context, cfg Config) (*Pod, error) {
	p, err := c.start(ctx, cfg, (*Pod).proveNetwork)
	if env.ConfigErrors(err) != nil {
		return nil, &env.Error{Status: env.SandboxRefused, Op: "start pod from " + cfg.Image, Err: err}
	}
	return p, err
}

// start is Start with other errors; prove checks the network.
func (c *Cluster) start(ctx context.Context, cfg Config, prove func(*Pod, context.Context) error) (_ *Pod, err error) {
	setDefault(&cfg.Network, NetworkNone)
	if err := cfg.validate(c.settings); err != nil {
		return nil, err
	}
	o, err := c.ensureOwner(ctx)
	if err != nil {
		return nil, err
	}
	p := &Pod{cluster: c, config: cfg, link: link.NewClient(link.NewKey()), ready: make(chan struct{})}
	p.setReady = sync.OnceFunc(func() { close(p.ready) })
	if c.slots != nil {
		c.settings.Waiting(cfg.Instance, "waiting for a place (max_pods)")
		if err := acquire(ctx, c.slots); err != nil {
			return nil, err
		}
		p.releaseSlot = func() { <-c.slots }
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.teardown(ctx))
		}
	}()
	if err := c.create(ctx, p, o); err != nil {
		return nil, err
	}
	if err := p.connect(ctx, o.helper.hash); err != nil {
		return nil, err
	}
	if err := prove(p, ctx); err != nil {
		return nil, err
	}
	return p, nil
}

func acquire(ctx context.Context, slots chan struct{}) error {
	select {
	case slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// create creates the pod and waits until its container runs.
func (c *Cluster) create(ctx context.Context, p *Pod, o *owner) error {
	image := c.settings.mirrored(p.config.Image)
	c.mu.Lock()
	pinned, ok := c.digests[image]
	c.mu.Unlock()
	if !ok {
		pinned = image
	}
	spec, err := c.newPod(p.config, pinned, o)
	if err != nil {
		return err
	}
	if err := acquire(ctx, c.starts); err != nil {
		return err
	}
	inCreation := true
	release := func() {
		if inCreation {
			inCreation = false
			<-c.starts
		}
	}
	defer release()
	p.name, p.state = spec.Name, c.pods.add(spec.Name)
	for {
		seen := c.pods.deletions()
		err := c.createOnce(ctx, spec)
		if err == nil {
			break
		}
		if !isQuota(err) {
			return err
		}
		release()
		c.settings.Waiting(p.config.Instance, "waiting for quota: "+quotaText(err))
		limited, cancel := context.WithTimeout(ctx, quotaWait)
		c.pods.waitForDeletion(limited, seen)
		cancel()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := acquire(ctx, c.starts); err != nil {
			return err
		}
		inCreation = true
	}
	running, err := c.waitForStart(ctx, p, release)
	if err == nil {
		c.pin(image, running)
		p.pod, p.running = running, time.Now()
	}
	return err
}

// quotaWait is how long to wait for quota that pods of others free.
const quotaWait = 10 * time.Second

// createOnce creates the pod. The error wraps the API server's if the quota is used up.
func (c *Cluster) createOnce(ctx context.Context, spec *corev1.Pod) error {
	var quotaErr error
	err := c.retry(ctx, "create pod "+spec.Name, func(ctx context.Context) error {
		// The request is not cancelled with ctx: the pod could appear after the cleanup.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer cancel()
		_, err := c.client.CoreV1().Pods(c.namespace).Create(ctx, spec, metav1.CreateOptions{})
		switch {
		case apierrors.IsAlreadyExists(err): // the response to an earlier try was lost
			return nil
		case isQuota(err):
			quotaErr = err
			return nil
		case isNoAccount(err):
			return apierrors.NewServiceUnavailable(err.Error()) // the namespace is new
		}
		return refused(err)
	})
	if err == nil && quotaErr != nil {
		if neverFits(quotaErr) {
			return configError("memory", "one pod exceeds the quota of the namespace: "+quotaText(quotaErr))
		}
		return quotaErr
	}
	return err
}

// isNoAccount reports whether a pod was refused because the service account does not
// exist yet.
func isNoAccount(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "serviceaccount") && strings.Contains(err.Error(), "not found")
}

// refused converts the refusal of a pod by an admission controller to an *env.ConfigError.
func refused(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		text := shorten(err.Error())
		key := "kubernetes"
		if strings.Contains(text, "violates PodSecurity") {
			key, text = "kubernetes.security", text+"; choose another profile"
		}
		if strings.Contains(text, "cannot create resource") {
			text += "; " + hintRights
		}
		return configError(key, "the cluster refuses the pod: "+text)
	}
	return err
}

var quotaPattern = regexp.MustCompile(`exceeded quota: .*`)

// quotaText returns the part of an error that says which quota is used up.
func quotaText(err error) string {
	if text := quotaPattern.FindString(err.Error()); text != "" {
		return shorten(text)
	}
	return shorten(err.Error())
}

var quotaParts = regexp.MustCompile(`requested: (.*?), used: .*?, limited: (.*)$`)

// neverFits reports whether a single pod requests more than the quota has.
func neverFits(err error) bool {
	m := quotaParts.FindStringSubmatch(quotaText(err))
	if m == nil {
		return false
	}
	limits := quantities(m[2])
	for name, requested := range quantities(m[1]) {
		if limit, ok := limits[name]; ok && requested.Cmp(limit) > 0 {
			return true
		}
	}
	return false
}

// quantities parses "pods=1,requests.memory=4Gi".
func quantities(s string) map[string]resource.Quantity {
	list := map[string]resource.Quantity{}
	for part := range strings.SplitSeq(s, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		if q, err := resource.ParseQuantity(value); err == nil {
			list[name] = q
		}
	}
	return list
}

// tellAfter is how long the start of a pod waits for one reason before that is told: most
// reasons last for less.
const tellAfter = time.Second

// waitForStart waits until the container runs. scheduled is called when the pod no
// longer waits for the scheduler's decision.
func (c *Cluster) waitForStart(ctx context.Context, p *Pod, scheduled func()) (*corev1.Pod, error) {
	s := c.settings
	limit, current := s.ScheduleTimeout, stageScheduling
	timer, tell := time.NewTimer(limit), time.NewTimer(tellAfter)
	defer timer.Stop()
	defer tell.Stop()
	last := ""
	for {
		pod, gone, changed := p.state.get()
		next, reason, failed := startState(pod)
		if gone && failed == nil {
			failed = &env.Error{Status: env.StartFailed, Err: errors.New("the pod was deleted")}
		}
		if failed != nil {
			return nil, p.startError(failed)
		}
		if pod != nil && condition(pod, corev1.PodScheduled) != nil {
			scheduled()
		}
		if next == stageRunning {
			return pod, nil
		}
		if next != current { // the pull and the start have one limit: the state does not tell them apart
			current, limit = next, s.PullTimeout+s.StartTimeout
			timer.Reset(limit)
		}
		if reason != last {
			last = reason
			tell.Reset(tellAfter)
		}
		select {
		case <-changed:
		case <-tell.C:
			s.Waiting(p.config.Instance, reason)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-timer.C:
			return nil, c.startTimeout(ctx, p, current, reason, limit)
		}
	}
}

// startTimeout returns the error of a pod that did not start in time.
func (c *Cluster) startTimeout(ctx context.Context, p *Pod, reached stage, reason string, limit time.Duration) error {
	e := &env.Error{Status: env.StartFailed, Op: "start pod " + p.fullName(), Err: fmt.Errorf("after %s: %s", limit, reason)}
	if event := c.lastWarning(ctx, p.name); event != "" && reached != stageScheduling { // there the reason is the event
		e.Err = fmt.Errorf("%w; last event: %s", e.Err, event)
	}
	switch {
	case reached == stageScheduling:
		e.Hint = "wait for a free node, or reduce environment.memory and environment.kubernetes.cpu_request; see environment.kubernetes.schedule_timeout"
	case strings.HasPrefix(reason, "pulling "):
		e.Status, e.Hint = env.PullFailed, "the registry is slow or cannot be reached from the node; see environment.pull_timeout"
	}
	return e
}

// lastWarning returns the newest event of a pod that reports a failure, or else the newest
// event, or "".
func (c *Cluster) lastWarning(ctx context.Context, name string) string {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := c.client.CoreV1().Events(c.namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
	if err != nil {
		return "" // the right to read events is optional
	}
	text := ""
	var newest time.Time
	failed := false
	for _, e := range list.Items {
		at, isFailure := e.LastTimestamp.Time, strings.HasPrefix(e.Reason, "Failed")
		if text == "" || isFailure && !failed || isFailure == failed && at.After(newest) {
			text, newest, failed = e.Reason+": "+shorten(e.Message), at, isFailure
		}
	}
	return text
}

// pin makes later pods use the same image, if the node reports its digest.
func (c *Cluster) pin(image string, pod *corev1.Pod) {
	digest := imageDigest(pod)
	named, err := reference.ParseNormalizedNamed(image)
	if digest == "" || err != nil {
		return
	}
	if _, ok := named.(reference.Digested); ok {
		return
	}
	_, sum, _ := strings.Cut(digest, "@")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.digests[image] = reference.TrimNamed(named).Name() + "@" + sum
}

// imageDigest returns the image of the sandbox as NAME@sha256:..., or "" if the node
// knows no digest, because the image did not come from a registry.
func imageDigest(pod *corev1.Pod) string {
	for _, status := range pod.Status.ContainerStatuses {
		if id := strings.TrimPrefix(status.ImageID, "docker-pullable://"); status.Name == containerName && strings.Contains(id, "@sha256:") {
			return id
		}
	}
	return ""
}

// connect connects to the helper.
func (p *Pod) connect(ctx context.Context, hash string) error {
	c := p.cluster
	p.startTransport() //nolint:contextcheck // until the pod is closed
	select {
	case <-p.ready:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	client, err := helper.Dial(ctx, p.link, helper.ClientConfig{
		Setup: helper.Setup{
			Dir: p.config.Dir, Env: p.config.Env, Interpreter: p.config.Interpreter,
			LeaseSeconds: int(c.settings.Lease / time.Second), ToolDir: toolDir,
		},
		Hash: hash, Timeout: p.config.Timeout, ExtendDeadline: p.extendDeadline,
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return p.startError(p.endReason(err))
	}
	p.setClient(client)
	hello := client.Hello()
	if err := checkShell(p.config, hello.Shell); err != nil {
		return err
	}
	p.info = newInfo(p.config, p.pod, hello)
	return nil
}

// startError returns the error of a pod that ended before it was ready.
func (p *Pod) startError(err error) *env.Error {
	e := p.lossError("start pod "+p.fullName(), err)
	if e.Status == env.ContainerDied {
		e.Status = env.StartFailed
	}
	return e
}

// checkShell returns an error if the helper did not find the configured shell.
func checkShell(cfg Config, found string) error {
	if len(cfg.Interpreter) == 0 || path.Base(found) == path.Base(cfg.Interpreter[0]) {
		return nil
	}
	return &env.Error{
		Status: env.StartFailed, Op: "start pod from " + cfg.Image, Err: fmt.Errorf("the image has no %s", cfg.Interpreter[0]),
		Hint: "choose another shell: environment.interpreter: [sh, -c]",
	}
}

// goArch maps machine names of uname(2) to those of images.
var goArch = map[string]string{"x86_64": "amd64", "aarch64": "arm64"}

func newInfo(cfg Config, pod *corev1.Pod, h helper.Hello) env.Info {
	i := h.Info()
	i.Disposable, i.Network = true, cfg.Network != NetworkNone
	i.Image, i.ImageDigest, i.ImageArch = cfg.Image, imageDigest(pod), goArch[h.Machine]
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == containerName && i.ImageDigest == "" {
			i.ImageID = status.ImageID
		}
	}
	if h.DirMissing {
		i.Warnings = append(i.Warnings, fmt.Sprintf("the image has no %s; commands start in %s", cfg.Dir, h.Dir))
	}
	if len(cfg.Interpreter) == 0 && path.Base(h.Shell) != "bash" {
		i.Warnings = append(i.Warnings, "the image has no bash; commands run with "+h.Shell)
	}
	return i
}
