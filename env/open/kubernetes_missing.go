//go:build !kubernetes

package envopen

import (
	"context"
	"io"

	"github.com/minibench/mini/internal/usage"

	"github.com/minibench/mini/configs"
)

func openCluster(context.Context, *configs.Resolved, io.Writer, Observer) (Cluster, error) {
	return nil, ErrNoKubernetes
}

// ErrNoKubernetes is returned by builds without the tag kubernetes.
var ErrNoKubernetes = usage.Errorf("this mini was built without support for Kubernetes; run mini-kubernetes instead, which make build-kubernetes makes")
