package doctor

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"strings"

	"github.com/docker/docker/client"
)

// engineHost returns the address of the container engine, without a password. origin is
// " (DOCKER_HOST)" if that variable sets the address, and "" for the default address.
func engineHost() (host, origin string) {
	if host := os.Getenv(client.EnvOverrideHost); host != "" {
		if u, err := url.Parse(host); err == nil {
			host = u.Redacted()
		}
		return host, " (DOCKER_HOST)"
	}
	return client.DefaultDockerHost, ""
}

// dockerContext returns the current context of the docker command and its address. It returns
// empty strings for the default context, also if DOCKER_HOST overrides the context, and on errors.
func dockerContext(ctx context.Context) (name, host string) {
	out, err := exec.CommandContext(ctx, "docker", "context", "inspect", "--format", "{{.Name}} {{.Endpoints.docker.Host}}").Output()
	name, host, _ = strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || name == "default" { // DOCKER_HOST selects the default context
		return "", ""
	}
	return name, host
}
