//go:build kubernetes

package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/minibench/mini/env"
	"github.com/minibench/mini/env/kubernetes"
	"github.com/minibench/mini/internal/text"
)

// ClusterConfig describes the pods of the intended run.
type ClusterConfig struct {
	Cluster         *kubernetes.Cluster // RunCluster closes it
	Pod             kubernetes.Config   // without an image, no pod is started
	Security        string
	NetworkRequired bool
	// Waiting returns for what the start of the pod waits; "" if nothing is known.
	Waiting func() string
}

// Advice that more than one check gives.
const (
	adviceRights  = "mini kubernetes rbac --namespace %s prints a Role for kubectl apply; the administrator of the cluster can create it"
	adviceCluster = "check with kubectl get pods; see kubeconfig, context and namespace in environment.kubernetes"
)

// trialTimeout limits the checks of a pod after its start.
const trialTimeout = 2 * time.Minute

// RunCluster checks a cluster, one check after the other. The start of the pod takes as
// long as the settings of the cluster allow.
func RunCluster(ctx context.Context, cfg ClusterConfig) []Check {
	c := &clusterChecker{cfg}
	checks, ok := c.connection(ctx)
	if !ok {
		return checks
	}
	rights, allowed := c.rights(ctx)
	checks = append(checks, rights...)
	checks = append(checks, c.bounds(ctx)...)
	switch {
	case cfg.Pod.Image == "":
		checks = append(checks, Check{"pod", Warn, "environment.image is not set, so no pod was started", "name an image that the nodes can pull: -c environment.image=IMAGE"})
	case !allowed:
		checks = append(checks, Check{"pod", Warn, "no pod was started, because rights are missing", "see rights above"})
	default:
		checks = append(checks, c.pod(ctx)...)
	}
	if err := cfg.Cluster.Close(); err != nil {
		checks = append(checks, failure("clean-up", err, "run mini clean --kubernetes --unknown"))
	}
	return checks
}

type clusterChecker struct{ ClusterConfig }

// ClusterSettings returns the failed check for settings with which no cluster can be
// reached.
func ClusterSettings(err error) Check {
	return failure("cluster", err, "mini config show environment prints the settings; "+adviceCluster)
}

// failure returns a failed check with the hint of the error, or else the advice.
func failure(name string, err error, advice string) Check {
	c := Check{name, Fail, errorText(err), advice}
	if e, ok := errors.AsType[*env.Error](err); ok {
		c.Advice = cmp.Or(e.Hint, advice)
	}
	return c
}

// errorText returns the text of an error without the status of an attempt.
func errorText(err error) string {
	if e, ok := err.(*env.Error); ok && e.Err != nil { //nolint:errorlint // the text of a wrapping error counts
		return e.Op + ": " + e.Err.Error()
	}
	return err.Error()
}

// connection checks the API server and the namespace. It is not ok if the further checks
// would fail for the same reason.
func (c *clusterChecker) connection(ctx context.Context) (checks []Check, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, totalTimeout)
	defer cancel()
	version, err := c.Cluster.ServerVersion(ctx)
	if err != nil {
		return []Check{failure("cluster", err, adviceCluster)}, false
	}
	checks = []Check{{"cluster", OK, fmt.Sprintf("%s responds, Kubernetes %s", c.Cluster.Host(), version), ""}}
	name := c.Cluster.Namespace()
	info, err := c.Cluster.DescribeNamespace(ctx)
	check := Check{"namespace", OK, name, ""}
	switch {
	case err != nil:
		return append(checks, failure("namespace", err, adviceCluster)), false
	case info.Missing:
		return append(checks, Check{"namespace", Fail, name + " does not exist", "create it with kubectl create namespace " + name + ", or set environment.kubernetes.namespace"}), false
	case info.Terminating:
		return append(checks, Check{"namespace", Fail, name + " is being deleted", "set environment.kubernetes.namespace to another one"}), false
	case info.Unknown:
		check.Finding += "; this user may not read it, so it is not known whether it exists"
	case info.PodSecurity != "":
		check.Finding += "; it enforces Pod Security " + info.PodSecurity
	}
	return append(checks, check), true
}

// rights checks each right. allowed means that none is missing that mini needs.
func (c *clusterChecker) rights(ctx context.Context) (checks []Check, allowed bool) {
	ctx, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()
	allowed = true
	advice := fmt.Sprintf(adviceRights, c.Cluster.Namespace()) // once
	for _, r := range kubernetes.Rights() {
		missing, err := c.Cluster.MissingVerbs(ctx, r)
		if err != nil {
			return append(checks, failure("rights", err, "without this answer the rights are unknown; "+adviceCluster)), false
		}
		check := Check{"rights", OK, fmt.Sprintf("%s: %s", r.Name(), strings.Join(r.Verbs, ", ")), ""}
		if len(missing) > 0 {
			check.Status, check.Finding = Fail, fmt.Sprintf("%s: missing: %s (for %s)", r.Name(), strings.Join(missing, ", "), r.Purpose)
			check.Advice, advice = advice, "see above"
			if r.Optional {
				check.Status, check.Finding = Warn, check.Finding+"; optional"
			} else {
				allowed = false
			}
		}
		checks = append(checks, check)
	}
	return checks, allowed
}

// bounds checks quotas and limit ranges.
func (c *clusterChecker) bounds(ctx context.Context) []Check {
	ctx, cancel := context.WithTimeout(ctx, totalTimeout)
	defer cancel()
	bounds, err := c.Cluster.ListBounds(ctx, c.Pod)
	if err != nil {
		return []Check{{"quota", Warn, "quotas and limit ranges are unknown: " + errorText(err), "mini waits if a quota is used up, and says so"}}
	}
	if len(bounds) == 0 {
		return []Check{{"quota", OK, "the namespace has no quotas or limit ranges", ""}}
	}
	var checks []Check
	for _, b := range bounds {
		check := Check{"quota", OK, b.Name + ": " + cmp.Or(b.Text, "nothing that pods use"), ""}
		switch {
		case b.Excess != "":
			check.Status, check.Advice = Fail, "one pod has "+b.Excess+"; change environment.memory, environment.cpus, cpu_request or ephemeral_storage of environment.kubernetes"
		case b.Room == 0:
			check.Status, check.Advice = Warn, "there is no room for a pod now; mini waits until there is"
		case b.Room > 0:
			check.Finding += fmt.Sprintf("; room for %s more", text.Count(b.Room, "pod"))
		}
		checks = append(checks, check)
	}
	return checks
}

// pod starts a pod and checks it.
func (c *clusterChecker) pod(ctx context.Context) []Check {
	trial, err := c.startTrial(ctx)
	if err != nil {
		return []Check{failure("pod", err, "see environment.kubernetes, and kubectl get events")}
	}
	ctx, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()
	checks := []Check{{
		"pod", OK, fmt.Sprintf("%s: running after %s, first result after %s", c.Pod.Image, seconds(trial.Running), seconds(trial.FirstResult)), "",
	}}
	for _, w := range trial.Warnings {
		checks = append(checks, Check{"admission", Warn, w, "the cluster may refuse such pods later; see environment.kubernetes.security"})
	}
	checks = append(checks, c.security(ctx, trial), c.forgery(ctx, trial), c.network(ctx, trial))
	took, err := trial.Remove(ctx)
	if err != nil {
		return append(checks, failure("clean-up", err, "find out why the pod stays with kubectl describe pod; then mini clean --kubernetes --unknown"))
	}
	return append(checks, Check{"clean-up", OK, "the pod was gone " + seconds(took) + " after its deletion", ""})
}

// startTrial starts a pod. A quota can delay that without a limit, so there is one here.
func (c *clusterChecker) startTrial(ctx context.Context) (*kubernetes.Trial, error) {
	limit := c.Cluster.StartLimit()
	waited := fmt.Errorf("the pod did not start in %s", limit)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, waited)
	defer cancel()
	trial, err := c.Cluster.StartTrial(ctx, c.Pod)
	if reason := c.Waiting(); errors.Is(err, waited) && reason != "" {
		return nil, fmt.Errorf("%w: %s", err, reason)
	}
	return trial, err
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// security checks what the profile promises.
func (c *clusterChecker) security(ctx context.Context, trial *kubernetes.Trial) Check {
	s, err := trial.Security(ctx)
	if err != nil {
		return failure("security", err, "")
	}
	user := "no root"
	if s.Root {
		user = "root"
	}
	if s.UserNamespace {
		user += ", of a user namespace"
	}
	check := Check{"security", OK, fmt.Sprintf("profile %s: %s, capabilities %s", c.Security, user, cmp.Or(s.Capabilities, "none")), ""}
	switch {
	case c.Security == kubernetes.UserNamespace && !s.UserNamespace:
		check.Status, check.Finding = Fail, check.Finding+"; the pod has no user namespace"
		check.Advice = "use a cluster whose nodes support user namespaces (hostUsers: false), or another environment.kubernetes.security"
	case c.Security == kubernetes.Restricted && s.Root:
		check.Status, check.Advice = Fail, "set environment.user to a number other than 0"
	case s.NewPrivileges && !c.Pod.NewPrivileges:
		check.Status, check.Finding = Warn, check.Finding+"; programs can gain privileges"
		check.Advice = "the container runtime of the node ignores allowPrivilegeEscalation"
	case !s.Seccomp:
		check.Status, check.Finding = Warn, check.Finding+"; system calls are not filtered"
		check.Advice = "the container runtime of the node has no seccomp profile; a runtime with its own kernel, such as gVisor, needs none"
	}
	return check
}

// forgery checks that a command cannot report results in place of the helper.
func (c *clusterChecker) forgery(ctx context.Context, trial *kubernetes.Trial) Check {
	opened, err := trial.Forge(ctx)
	switch {
	case err != nil:
		return failure("forgery", err, "do not run benchmarks in this cluster until this check passes")
	case len(opened) > 0:
		return Check{"forgery", Fail, "a command could open " + firstNames(opened), "do not trust results from this container runtime; try another one (environment.runtime)"}
	}
	return Check{"forgery", OK, "commands cannot open the connection and the memory of the helper", ""}
}

// network proves that the pod has no network.
func (c *clusterChecker) network(ctx context.Context, trial *kubernetes.Trial) Check {
	if name := c.Pod.Network; name != kubernetes.NetworkNone && name != "" {
		return Check{"network", OK, "environment.network is " + name + ", so nothing is proven", ""}
	}
	reached, blocked, err := trial.ProbeNetwork(ctx)
	switch {
	case err != nil:
		return failure("network", err, "")
	case len(reached) == 0:
		return Check{"network", OK, "none: no answer from " + strings.Join(blocked, ", "), ""}
	case !c.NetworkRequired:
		return Check{"network", Warn, "not isolated: answers from " + strings.Join(reached, ", "), "attempts can use the network; their records say unproven"}
	}
	return Check{
		"network", Fail, "not isolated: answers from " + strings.Join(reached, ", ") + "; the cluster does not enforce the NetworkPolicy",
		"use a network plugin that enforces policies, or accept it: -c environment.kubernetes.network_required=false",
	}
}
