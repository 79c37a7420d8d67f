package envopen

import "github.com/minibench/mini/internal/usage"

// ErrNoKubernetes is returned by builds without the tag kubernetes.
var ErrNoKubernetes = usage.Errorf("this mini was built without support for Kubernetes; run mini-kubernetes instead, which make build-kubernetes makes")
