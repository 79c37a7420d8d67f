package configs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/joho/godotenv"

	"github.com/minibench/mini/internal/lazyregexp"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/internal/userdirs"
)

// Keys come from the environment or from .env files. mini trusts the user's own
// .env file, beside the configuration. A .env file in the working directory may
// belong to an untrusted repository: it may set a key and the address for that
// key, but no address for other keys (see ModelKey). From both files mini reads
// only the variables of providers, for example neither PATH nor HTTPS_PROXY. The
// file of mini-swe-agent is the user's own, too; mini reads it last, and also takes
// the variables of mini-swe-agent from it.

// maxDotenv is how much of a .env file is read, in bytes.
const maxDotenv = 1 << 20

// ProviderVariable matches the variables that mini reads from .env files.
var ProviderVariable = lazyregexp.New(`^(?:OPENAI_API_BASE|(?:OPENAI|ANTHROPIC)_(?:BASE_URL|MODEL)|[A-Z][A-Z0-9_]*_KEY|HF_TOKEN)$`)

// mentionsProvider matches lines that may set a variable of a provider, in files
// with invalid syntax.
var mentionsProvider = lazyregexp.New(`(?m)^[ \t]*(?:export[ \t]+)?[A-Z0-9_]*(?:_API_KEY|_BASE_URL|_MODEL)[ \t]*=`)

// UserDotenv returns the path of the user's own .env file; "" if the system has
// no configuration folder.
func UserDotenv() string {
	if path := userdirs.ConfigFile(); path != "" {
		return filepath.Join(filepath.Dir(path), ".env")
	}
	return ""
}

// PeerDotenv returns the path of the file in which mini-swe-agent stores keys and its variables; ""
// if the system has no configuration folder.
func PeerDotenv() string {
	dir := os.Getenv("MSWEA_GLOBAL_CONFIG_DIR")
	if dir == "" {
		parent, err := os.UserConfigDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(parent, "mini-swe-agent")
	}
	return filepath.Join(dir, ".env")
}

// peerVariable matches the variables that mini reads from PeerDotenv.
var peerVariable = lazyregexp.New(`^(?:OPENAI_API_BASE|(?:OPENAI|ANTHROPIC)_BASE_URL|[A-Z][A-Z0-9_]*_API_KEY|HF_TOKEN|MSWEA_[A-Z_]+|LITELLM_MODEL_REGISTRY_PATH)$`)

// folderDotenv is the file in the working directory. folderLayer is the prefix
// of the names of layers whose values are from this file.
const (
	folderDotenv = ".env"
	folderLayer  = "./.env: "
)

// LoadDotenv sets the variables of the .env files that the environment does not
// set: those of the user's file, of the working directory's and of mini-swe-agent's.
// It keeps the addresses in the working directory's file for ProviderURL, because their
// origin must be known. A command calls it once.
func LoadDotenv() error {
	trace("dotenv")
	if path := UserDotenv(); path != "" {
		userValues, err := readDotenv(path, ProviderVariable)
		if err != nil {
			return err
		}
		if err := setMissing(path, userValues); err != nil {
			return err
		}
	}
	folderValues, err := readDotenv(folderDotenv, ProviderVariable)
	if err != nil {
		return err
	}
	folderVariables.Store(&folderValues)
	isAddress := func(name, _ string) bool { return strings.HasSuffix(name, "_BASE_URL") || name == "OPENAI_API_BASE" }
	others := maps.Clone(folderValues)
	maps.DeleteFunc(others, isAddress)
	if err := setMissing(folderDotenv, others); err != nil {
		return err
	}
	path := PeerDotenv()
	if path == "" {
		return nil
	}
	peerValues, err := readDotenv(path, peerVariable)
	if err != nil {
		return err
	}
	// An address of the folder's file is not in the environment, and comes first.
	maps.DeleteFunc(peerValues, func(name, value string) bool { return isAddress(name, value) && folderValues[name] != "" })
	return setMissing(path, peerValues)
}

// folderVariables are the variables of the working directory's file, which LoadDotenv has read.
var folderVariables atomic.Pointer[map[string]string]

// folderVariable returns the value that the working directory's file has for a variable, or "".
func folderVariable(name string) string {
	if values := folderVariables.Load(); values != nil {
		return (*values)[name]
	}
	return ""
}

// dotenvValue is the value of a variable that LoadDotenv has set, and its file.
type dotenvValue struct{ file, value string }

// dotenvValues has the dotenvValue of each variable that LoadDotenv has set, by name.
var dotenvValues sync.Map

// DotenvFile returns the path of the .env file that has set a variable; "" if the variable is not
// set, or if the environment of mini has set it.
func DotenvFile(name string) string {
	loaded, _ := dotenvValues.Load(name)
	if v, ok := loaded.(dotenvValue); ok && v.value == os.Getenv(name) {
		return v.file
	}
	return ""
}

// ReplaceKey says how to replace the key in a variable that is set.
func ReplaceKey(name string) string {
	switch file := DotenvFile(name); file {
	case "":
		return "export " + name + "=... in your shell replaces it"
	case UserDotenv():
		return "mini config set " + name + " replaces it in " + file
	default:
		return "change it in " + file
	}
}

// ProviderURL returns the provider's address in an environment variable or in
// the working directory's .env file, and the name of the configuration layer.
func ProviderURL(name string) (address, layer string) {
	if address = os.Getenv(name); address != "" {
		return address, name
	}
	return folderVariable(name), folderLayer + name
}

// IsFolderURL reports whether the address of a model is from the working
// directory's .env file.
func IsFolderURL(cfg *Resolved) bool {
	o, ok := cfg.Origin("model.base_url")
	return ok && strings.HasPrefix(o.Layer, folderLayer)
}

// ModelKey returns the key for the address of a model. All code that uses a key
// must get it here: if the address is from the working directory's .env file, the
// key must be from that file too, and there must be no configured headers.
func ModelKey(cfg *Resolved) (string, error) {
	if cfg.key != nil && cfg.Model.BaseURL == cfg.keyURL {
		return *cfg.key, nil
	}
	key := os.Getenv(cfg.Model.APIKeyEnv)
	if !IsFolderURL(cfg) {
		return key, nil
	}
	o, _ := cfg.Origin("model.base_url")
	name := strings.TrimPrefix(o.Layer, folderLayer)
	if len(cfg.Model.Headers) > 0 { // .env files cannot set headers
		return "", usage.Errorf("./.env sets %s, and model.headers are not from ./.env: a folder's file must not choose where your headers are sent; "+
			"take model.headers out of the settings, or set %s in your shell", name, name)
	}
	if key == "" || key != folderVariable(cfg.Model.APIKeyEnv) {
		return "", usage.Errorf("./.env sets %s, and the key in %s is not from ./.env: a folder's file must not choose where your key is sent; "+
			"set both in ./.env, or %s in your shell", name, cfg.Model.APIKeyEnv, name)
	}
	return key, nil
}

// RequestLayer is the name of the layer with the settings of a request to mini serve.
const RequestLayer = "the request"

// SetModelKey sets the key for the address of the model, in memory only. With "" no key is sent there.
func (r *Resolved) SetModelKey(key string) { r.key, r.keyURL = &key, r.Model.BaseURL }

// OwnModelKey returns the key of SetModelKey, or "".
func (r *Resolved) OwnModelKey() string {
	if r.key == nil {
		return ""
	}
	return *r.key
}

// setMissing sets the variables of a file that the environment does not set.
func setMissing(path string, values map[string]string) error {
	for name, value := range values {
		if os.Getenv(name) != "" {
			continue
		}
		if err := os.Setenv(name, value); err != nil {
			return usage.Errorf("%s in %s: %v", name, path, err)
		}
		dotenvValues.Store(name, dotenvValue{path, value})
	}
	return nil
}

// readDotenv returns the variables of a file that are accepted and not empty. It ignores a
// path that is not a regular file, and a file with invalid syntax that does not seem to
// contain a provider variable.
func readDotenv(path string, accepted *lazyregexp.Regexp) (map[string]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil, nil //nolint:nilnil // there is no such file
	}
	f, err := os.Open(path) //nolint:gosec // G304: the name of the file is fixed
	if errors.Is(err, os.ErrPermission) {
		return nil, usage.Errorf("%s cannot be read: make it readable, or set the variables in your shell", path)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	defer f.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(io.LimitReader(f, maxDotenv))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	all, err := godotenv.Parse(bytes.NewReader(data))
	if err != nil { // err may contain a key
		if mentionsProvider.Match(data) {
			return nil, usage.Errorf("%s cannot be read: lines have the form NAME=value; mend it, or set the variables in your shell", path)
		}
		return nil, nil //nolint:nilnil // a file of another program
	}
	values := map[string]string{}
	for name, value := range all {
		if accepted.MatchString(name) && value != "" {
			values[name] = value
		}
	}
	return values, nil
}
