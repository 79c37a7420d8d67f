//go:build kubernetes

package envopen

import (
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/env/kubernetes"
)

// ConnectCluster prepares a connection to the configured cluster, without a request, and
// returns the settings that all its pods share. It is for commands that examine or clean
// a cluster.
func ConnectCluster(cfg *configs.Resolved, change func(*kubernetes.Settings)) (*kubernetes.Cluster, kubernetes.Config, error) {
	pod := podConfig(parseContainer(cfg.Environment), 0)
	s, err := ClusterSettings(cfg)
	if err != nil {
		return nil, pod, err
	}
	if change != nil {
		change(&s)
	}
	c, err := kubernetes.Connect(s)
	return c, pod, configErrors(cfg, err)
}
