// Package pod runs the helper as PID 1 of a Kubernetes pod. Its program has a
// subcommand for each function.
//
// A pod has no stream to PID 1 that lasts. For each connection mini runs a relay in the
// pod: it passes its standard streams, which the API server connects with mini, to PID 1
// through a socket, and waits. PID 1 reads and writes them as one connection of a link
// (see package link). No bytes pass through the relay, and its memory has no key.
package pod

import "time"

// Subcommands of the helper.
const (
	ServeArg   = "pod"     // Serve, as PID 1
	RelayArg   = "relay"   // Relay
	ProbeArg   = "probe"   // Probe: a duration and addresses follow
	InstallArg = "install" // Install: a directory follows
)

// Names of the helper in its directory, and of the directory below it with mini-tool.
const (
	Binary  = "h"
	ToolDir = "bin"
)

// FirstConnection is how long Serve waits for the first client.
const FirstConnection = 5 * time.Minute
