//go:build !kubernetes

package system

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/system/doctor"
	"github.com/minibench/mini/configs"
	envopen "github.com/minibench/mini/env/open"
)

func writeRole(io.Writer, *RoleOptions) error { return envopen.ErrNoKubernetes }

func writeHelperImage(io.Writer, string) (tag string, err error) {
	return "", envopen.ErrNoKubernetes
}

func checkCluster(context.Context, *app.App, *configs.Resolved) ([]doctor.Check, error) {
	return nil, envopen.ErrNoKubernetes
}

func sweepCluster(context.Context, *configs.Resolved, *CleanOptions) (removed, kept []fmt.Stringer, err error) {
	return nil, nil, envopen.ErrNoKubernetes
}

func addGuard(*cobra.Command, *app.App) {}
