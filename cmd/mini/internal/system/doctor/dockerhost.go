package doctor

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"strings"

	"github.com/docker/docker/client"
)

// engineHost returns the address of the container engine and where it was set.
func engineHost() (host, where string) {
	if host := os.Getenv(client.EnvOverrideHost); host != "" {
		if u, err := url.Parse(host); err == nil {
			host = u.Redacted()
		}
		return host, " (DOCKER_HOST)"
	}
	return client.DefaultDockerHost, ""
}

// dockerContext returns the current context of the docker command and its address. DOCKER_HOST
// overrides it.
func dockerContext(ctx context.Context) (name, host string) {
	out, err := exec.CommandContext(ctx, "docker", "context", "inspect", "--format", "{{.Name}} {{.Endpoints.docker.Host}}").Output()
	name, host, _ = strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || name == "default" { // no docker command, or DOCKER_HOST is set
		return "", ""
	}
	return name, host
}
