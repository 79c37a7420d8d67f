package system

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/internal/atomicfile"
	"github.com/minibench/mini/internal/usage"
)

// NewKubernetes returns the command mini kubernetes.
func NewKubernetes(a *app.App) *cobra.Command {
	cmd := cmdutil.WithSubcommands(&cobra.Command{
		Use:   "kubernetes",
		Short: "Print the rights and write the image that a cluster needs",
		Long: `Prepares a namespace of a Kubernetes cluster for sandboxes. mini doctor
--kubernetes checks it, and mini clean --kubernetes removes what is left.`,
		Example: `  mini kubernetes rbac --namespace bench --user alice | kubectl apply -f -
  mini kubernetes helper-image -o helper.tar`,
	}, newRBAC(a), newHelperImage(a))
	addGuard(cmd, a)
	return cmd
}

// RoleOptions are the flags of mini kubernetes rbac.
type RoleOptions struct {
	namespace                      string
	users, groups, serviceAccounts []string
}

func newRBAC(a *app.App) *cobra.Command {
	o := &RoleOptions{}
	cmd := &cobra.Command{
		Use:   "rbac",
		Short: "Print the rights that mini needs, as a Role and a RoleBinding",
		Long: `Prints the rights that mini needs in a namespace as YAML: a Role, and a
RoleBinding that gives it to a user, a group or a service account. It does not
contact the cluster.`,
		Example: `  mini kubernetes rbac --namespace bench --user alice | kubectl apply -f -
  mini kubernetes rbac --namespace bench --service-account ci:runner`,
		Args: cmdutil.NoArgs,
		RunE: func(*cobra.Command, []string) error { return writeRole(a.Out, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.namespace, "namespace", "default", "`NAME` of the namespace of the sandboxes")
	f.StringArrayVar(&o.users, "user", nil, "`NAME` of a user who gets the rights; repeatable")
	f.StringArrayVar(&o.groups, "group", nil, "`NAME` of a group that gets the rights; repeatable")
	f.StringArrayVar(&o.serviceAccounts, "service-account", nil, "`NAME` or NAMESPACE:NAME of a service account that gets the rights; repeatable")
	return cmd
}

// HelperImageOptions are the flags of mini kubernetes helper-image.
type HelperImageOptions struct{ output, arch string }

func newHelperImage(a *app.App) *cobra.Command {
	o := &HelperImageOptions{}
	cmd := &cobra.Command{
		Use:   "helper-image",
		Short: "Write an image with mini's helper, for task images without a shell",
		Long: `Writes an image that contains only mini's helper to a tar file. docker load, crane
push and ctr images import read it. With environment.kubernetes.helper=image,
pods get the helper from this image, so the image of a task needs no sh, cat and
chmod to start. Another version of mini needs another image.`,
		Example: `  mini kubernetes helper-image -o helper.tar
  crane push helper.tar registry.example/mini-helper:1`,
		Args: cmdutil.NoArgs,
		RunE: func(*cobra.Command, []string) error { return writeImage(a, o) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.output, "output", "o", "", "`FILE` to write")
	f.StringVar(&o.arch, "arch", "amd64", "architecture of the nodes: amd64 or arm64")
	return cmd
}

func writeImage(a *app.App, o *HelperImageOptions) error {
	if o.output == "" {
		return usage.Errorf("-o is required: the file to write, such as helper.tar")
	}
	var tag string
	err := atomicfile.WriteFunc(o.output, 0o644, func(w io.Writer) (err error) {
		tag, err = writeHelperImage(w, o.arch)
		return err
	})
	if err != nil {
		return usage.Wrap(err)
	}
	_, err = fmt.Fprintf(a.Out, `wrote %[1]s: %[2]s

Push it to a registry that the nodes can read, with one of:

  docker load -i %[1]s && docker tag %[2]s REGISTRY/%[2]s && docker push REGISTRY/%[2]s
  crane push %[1]s REGISTRY/%[2]s

or import it on each node:

  ctr -n k8s.io images import %[1]s

Then set in your configuration:

  environment:
    kubernetes:
      helper: image
      helper_image: REGISTRY/%[2]s    # docker.io/library/%[2]s after an import
`, o.output, tag)
	return err
}

// cleanCluster removes, or lists, what mini processes left behind in a cluster.
func cleanCluster(ctx context.Context, a *app.App, o *CleanOptions) error {
	if o.options.IncludeKept || o.run != "" {
		return usage.Errorf("--kept and --run are for containers: mini keeps no sandboxes in a cluster")
	}
	cfg, err := a.ConfigWithoutModel(ctx, &o.Flags, "swebench")
	if err != nil {
		return err
	}
	removed, kept, err := sweepCluster(ctx, cfg, o)
	// Print what was removed even after an error.
	return errors.Join(err, o.print(a, removed, kept,
		"the mini process of these may be running; they can be removed after 15 minutes without its heartbeat, or now with --unknown", err == nil))
}
