package doctor

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/url"
	"os"
	"path/filepath"

	"github.com/docker/docker/client"
)

// engineHost is where mini looks for the engine, and which variable says so.
func engineHost() (host, where string) {
	if host := os.Getenv(client.EnvOverrideHost); host != "" {
		if u, err := url.Parse(host); err == nil {
			host = u.Redacted()
		}
		return host, " (DOCKER_HOST)"
	}
	return client.DefaultDockerHost, ""
}

// maxContext bounds the files of the docker command that are read, in bytes.
const maxContext = 1 << 20

// dockerContext is what the docker command would use in the place of
// DOCKER_HOST: the name of its context and the address in it. The layout of
// its folder is that of github.com/docker/cli (cli/context/store).
func dockerContext() (name, host string) {
	if os.Getenv(client.EnvOverrideHost) != "" {
		return "", ""
	}
	dir := os.Getenv("DOCKER_CONFIG")
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", ""
		}
		dir = filepath.Join(home, ".docker")
	}
	name = os.Getenv("DOCKER_CONTEXT")
	if name == "" {
		var config struct {
			CurrentContext string `json:"currentContext"`
		}
		readJSON(filepath.Join(dir, "config.json"), &config)
		name = config.CurrentContext
	}
	if name == "" || name == "default" {
		return "", ""
	}
	var meta struct {
		Endpoints map[string]struct{ Host string }
	}
	sum := sha256.Sum256([]byte(name))
	readJSON(filepath.Join(dir, "contexts", "meta", hex.EncodeToString(sum[:]), "meta.json"), &meta)
	return name, meta.Endpoints["docker"].Host
}

// readJSON leaves v as it is where there is no such file, or no JSON in it.
func readJSON(path string, v any) {
	f, err := os.Open(path) //nolint:gosec // a file of the user's own
	if err != nil {
		return
	}
	defer f.Close() //nolint:errcheck // read only
	data, err := io.ReadAll(io.LimitReader(f, maxContext))
	if err == nil {
		_ = json.Unmarshal(data, v) // what is no JSON says nothing
	}
}
