//go:build !kubernetes

package envopen

import (
	"context"
	"io"

	"github.com/minibench/mini/configs"
)

func openCluster(context.Context, *configs.Resolved, io.Writer, Observer) (Cluster, error) {
	return nil, ErrNoKubernetes
}
