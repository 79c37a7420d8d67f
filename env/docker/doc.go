// Package docker runs sandboxes as containers of a Docker engine, or of another
// engine with the same API, such as podman.
//
// An Engine is the connection to the daemon; all attempts of a run share it. A
// Container is one sandbox and implements env.Environment. PID 1 of every
// container is the helper (see env/helper), mounted from a volume. The package talks
// to the helper through a Unix socket, or through the attached stdin and stdout if the
// helper cannot connect to the socket, for example because the daemon runs on another
// machine. The package does not use "docker exec" for commands: the helper starts a
// command in about a millisecond and kills it reliably when it times out.
//
//	engine, err := docker.Open(ctx, docker.EngineConfig{})
//	if err != nil { ... }
//	defer engine.Close()
//	sandbox, err := engine.Start(ctx, docker.Config{Image: "python:3.12", Dir: "/testbed"})
//	if err != nil { ... }
//	defer sandbox.Close(ctx)
//
// A container ends when the process that started it exits: the attached
// connection closes, or the lease expires. Engine.Sweep finds what remains by
// its labels and removes it.
package docker
