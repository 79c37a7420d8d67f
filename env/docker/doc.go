// Package docker runs sandboxes as containers of a Docker engine (or of
// another engine that speaks its API, such as podman).
//
// An Engine is the connection to the daemon, shared by everything in a batch;
// a Container is one sandbox and implements env.Environment. The program that
// is PID 1 of every container (see env/helper) arrives in a read-only volume
// and speaks through a socket, or through the attached stdin and stdout where the
// engine is on another machine, so that a command costs about a millisecond and
// dies when its time is up; "docker exec" is not used.
//
//	engine, err := docker.Open(ctx, docker.EngineConfig{})
//	if err != nil { ... }
//	defer engine.Close()
//	box, err := engine.Start(ctx, docker.Config{Image: "python:3.12", Dir: "/testbed"})
//	if err != nil { ... }
//	defer box.Close(ctx)
//
// Nothing outlives its owner: a container ends with the connection that it is
// attached to, or when its lease runs out, and what is left over all the same
// is found by its labels (see Engine.Sweep).
package docker
