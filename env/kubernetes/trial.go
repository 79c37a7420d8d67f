//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/helper/pod"
)

// Trial is a pod that was started to see how sandboxes work in the cluster.
type Trial struct {
	pod *Pod
	// Running is the time from the request until the container ran, FirstResult the
	// time until the first command had ended.
	Running, FirstResult time.Duration
	// Warnings are those of the API server about the pod, for example because of Pod
	// Security.
	Warnings []string
}

// StartLimit is how long the start of a pod may take, unless it waits for quota.
func (c *Cluster) StartLimit() time.Duration {
	return c.settings.ScheduleTimeout + c.settings.PullTimeout + c.settings.StartTimeout
}

// StartTrial starts a pod, runs one command, and does not test the network. The caller
// calls Remove.
func (c *Cluster) StartTrial(ctx context.Context, cfg Config) (*Trial, error) {
	c.warnings.take()
	begin := time.Now()
	p, err := c.start(ctx, cfg, func(*Pod, context.Context) error { return nil })
	if err != nil {
		return nil, err
	}
	t := &Trial{pod: p, Running: p.running.Sub(begin)}
	if _, err := t.run(ctx, "true"); err != nil {
		return nil, errors.Join(err, p.Close(ctx))
	}
	t.FirstResult, t.Warnings = time.Since(begin), c.warnings.take()
	return t, nil
}

// run returns the output of a script in the pod.
func (t *Trial) run(ctx context.Context, script string) (string, error) {
	res, err := t.pod.Execute(ctx, env.Command{Script: script})
	switch {
	case err != nil:
		return "", err
	case res.ExitCode != 0:
		return "", fmt.Errorf("a command of the check failed with exit code %d: %.200s", res.ExitCode, res.Output)
	}
	return string(res.Output), nil
}

// SecurityInfo says which rights commands in a pod have.
type SecurityInfo struct {
	Root          bool   // the user is root
	UserNamespace bool   // root in the pod is another user of the node
	Seccomp       bool   // system calls are filtered
	NewPrivileges bool   // set-uid programs gain privileges
	Capabilities  string // those of the bounding set, in hex
}

// Security returns which rights commands have, as the kernel of the node reports it.
func (t *Trial) Security(ctx context.Context) (SecurityInfo, error) {
	out, err := t.run(ctx, "for f in status uid_map; do while read -r line; do echo $line; done </proc/$$/$f; done")
	if err != nil {
		return SecurityInfo{}, err
	}
	return parseSecurity(out), nil
}

// parseSecurity parses the files status and uid_map of a process.
func parseSecurity(out string) SecurityInfo {
	var s SecurityInfo
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "Uid:":
			s.Root = fields[1] == "0"
		case "NoNewPrivs:":
			s.NewPrivileges = fields[1] == "0"
		case "Seccomp:":
			s.Seccomp = fields[1] == "2"
		case "CapBnd:":
			s.Capabilities = strings.TrimLeft(fields[1], "0")
		case "0": // uid_map: the user inside, the one outside, a number of users
			s.UserNamespace = fields[1] != "0"
		}
	}
	return s
}

// forgeScript prints what a command can open of the helper's processes, which are PID 1
// and the relay of this connection, and the number of these processes. Opening does not change
// anything, and cannot block, because it is for reading and writing.
const forgeScript = `n=0
for p in /proc/[0-9]*; do
	read -r name <$p/comm && [ "$name" = ` + pod.Binary + ` ] || continue
	n=$((n+1))
	for i in fd/0 fd/1 fd/2 fd/3 fd/4 fd/5 fd/6 fd/7 fd/8 fd/9 fd/10 fd/11 fd/12 fd/13 fd/14 fd/15 mem; do
		(: <>$p/$i) && echo "open $p/$i"
	done
done 2>/dev/null
echo "processes $n"`

// Forge tries, as a command in the pod, to open the connection and the memory of the
// helper, with which a command could report results in its place. It returns what it
// could open, which should be nothing.
func (t *Trial) Forge(ctx context.Context) ([]string, error) {
	out, err := t.run(ctx, forgeScript)
	if err != nil {
		return nil, err
	}
	return parseForge(out)
}

// parseForge parses the output of forgeScript, which may have messages of the shell.
func parseForge(out string) (opened []string, err error) {
	processes := ""
	for line := range strings.Lines(out) {
		word, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "open":
			opened = append(opened, value)
		case "processes":
			processes = value
		}
	}
	if n, err := strconv.Atoi(processes); err != nil || n < 2 {
		return nil, fmt.Errorf("the helper's processes are not visible in the pod: %.200q", out)
	}
	return opened, nil
}

// ProbeNetwork tries to reach something from the pod, for up to ten seconds until
// nothing answers. Both results are lists of targets.
func (t *Trial) ProbeNetwork(ctx context.Context) (reached, blocked []string, err error) {
	return t.pod.probe(ctx, probeLimit)
}

// goneTimeout limits the wait until a deleted pod is gone. Its processes have two
// seconds to end.
const goneTimeout = 30 * time.Second

// Remove deletes the pod and waits until the cluster has removed it. It returns how long
// that took.
func (t *Trial) Remove(ctx context.Context) (time.Duration, error) {
	begin, c := time.Now(), t.pod.cluster
	if err := t.pod.Close(ctx); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), goneTimeout,
		fmt.Errorf("pod %s is still there after %s", t.pod.name, goneTimeout))
	defer cancel()
	selector := metav1.ListOptions{LabelSelector: labelOwner + "=" + t.pod.pod.Labels[labelOwner]}
	for {
		list, err := c.client.CoreV1().Pods(c.namespace).List(ctx, selector)
		if err == nil && len(list.Items) == 0 {
			return time.Since(begin), nil
		}
		if !sleep(ctx, firstWait) {
			return 0, fmt.Errorf("delete pod: %w", context.Cause(ctx))
		}
	}
}
