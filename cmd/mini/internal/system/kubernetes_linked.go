//go:build kubernetes

package system

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/system/doctor"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/env/kubernetes"
	envopen "github.com/minibench/mini/env/open"
	"github.com/minibench/mini/internal/usage"
)

func writeRole(w io.Writer, o *RoleOptions) error {
	return usage.Wrap(kubernetes.WriteRole(w, kubernetes.RoleOptions{
		Namespace: o.namespace, Users: o.users, Groups: o.groups, ServiceAccounts: o.serviceAccounts,
	}))
}

func writeHelperImage(w io.Writer, arch string) (tag string, err error) {
	return kubernetes.WriteHelperImage(w, "", arch)
}

// Limits of mini doctor for its pod: the wait for a node, and the pull of the image
// unless the user has set another limit.
const (
	maxSchedule = 2 * time.Minute
	pullTimeout = 5 * time.Minute
)

// checkCluster checks the configured cluster.
func checkCluster(ctx context.Context, a *app.App, cfg *configs.Resolved) ([]doctor.Check, error) {
	var reason atomic.Pointer[string]
	reason.Store(new(string))
	c := doctor.ClusterConfig{Waiting: func() string { return *reason.Load() }}
	cluster, pod, err := envopen.ConnectCluster(cfg, func(k *kubernetes.Settings) {
		k.ScheduleTimeout, k.PullTimeout = min(k.ScheduleTimeout, maxSchedule), cmp.Or(k.PullTimeout, pullTimeout)
		k.Waiting = func(_, text string) { reason.Store(&text) }
		c.Security, c.NetworkRequired = k.Security, k.NetworkRequired
	})
	if err != nil {
		return []doctor.Check{doctor.ClusterSettings(err)}, nil
	}
	c.Cluster, c.Pod = cluster, pod
	if pod.Image != "" {
		_, _ = fmt.Fprintln(a.Err, "mini: checking the cluster with a pod; the pull of its image may take minutes") // best effort
	}
	return doctor.RunCluster(ctx, c), nil
}

// sweepCluster removes, or lists, what mini processes left behind in a cluster.
func sweepCluster(ctx context.Context, cfg *configs.Resolved, o *CleanOptions) (removed, kept []fmt.Stringer, err error) {
	cluster, _, err := envopen.ConnectCluster(cfg, nil)
	if err != nil {
		return nil, nil, err
	}
	options := kubernetes.CleanOptions{IncludeHelpers: o.options.IncludeHelpers, IncludeAlive: o.options.IncludeUnknown}
	clean := cluster.Clean
	if o.dryRun {
		clean = cluster.ListLeftovers
	}
	rest, listErr := cluster.ListKept(ctx, options) // before --all removes anything
	var list []kubernetes.Leftover
	if listErr == nil {
		list, err = clean(ctx, options)
	}
	return stringers(list), stringers(rest), errors.Join(listErr, err, cluster.Close())
}

// addGuard adds the subcommand that mini starts itself, to delete its pods if it is
// killed.
func addGuard(parent *cobra.Command, a *app.App) {
	var k kubernetes.Settings
	cmd := &cobra.Command{
		Use:    envopen.GuardCommand + " OWNER",
		Hidden: true,
		Args:   cmdutil.ExactlyOne("the name of an owner"),
		RunE: func(cmd *cobra.Command, args []string) error {
			// The process that ends may send its signals to this one, too.
			return kubernetes.Guard(context.WithoutCancel(cmd.Context()), k, args[0], a.In)
		},
	}
	f := cmd.Flags()
	f.StringVar(&k.Kubeconfig, "kubeconfig", "", "")
	f.StringVar(&k.Context, "context", "", "")
	f.StringVar(&k.Namespace, "namespace", "", "")
	parent.AddCommand(cmd)
}
