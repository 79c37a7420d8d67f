package docker

import (
	"context"
	"errors"
	"strings"

	"github.com/minibench/mini/env"
)

var _ env.NetworkChanger = (*Container)(nil)

// ChangeNetwork takes the container out of its networks and puts it into another one; "none"
// leaves it without any. Connections of running processes break. Info still describes the
// network of the start.
func (c *Container) ChangeNetwork(ctx context.Context, network string) error {
	op := "change the network of " + c.name + " to " + network
	if !CanChangeNetwork(network) {
		return &env.Error{Status: env.SetupFailed, Op: op, Err: errors.New("the engine puts no running container into this network")}
	}
	found, err := c.engine.api.ContainerInspect(ctx, c.name)
	if err == nil && found.NetworkSettings != nil {
		for old := range found.NetworkSettings.Networks {
			if err = c.engine.api.NetworkDisconnect(ctx, old, c.name, false); err != nil {
				break
			}
		}
	}
	if network == "default" {
		network = networkBridge
	}
	if err == nil && network != networkNone {
		err = c.engine.api.NetworkConnect(ctx, network, c.name, nil)
	}
	if err != nil {
		return engineError(ctx, env.SetupFailed, op, err)
	}
	return nil
}

// CanChangeNetwork reports whether a running container can enter and leave a network: any
// but those of the machine and of other containers.
func CanChangeNetwork(network string) bool {
	return network != networkHost && !strings.HasPrefix(network, networkContainer)
}
