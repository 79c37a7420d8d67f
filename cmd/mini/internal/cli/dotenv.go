package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/joho/godotenv"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/lazyregexp"
)

// Keys are configured by the environment, and many keep them in a file named
// .env. The user's own, beside the configuration, is trusted. One in the
// working directory may be part of a repository that somebody else wrote: it
// may bring a key, and the address that the key is for, but no address for a key
// from elsewhere, which would then be sent there (see keyOf). Neither brings
// variables that are not a provider's, such as PATH or HTTPS_PROXY.

// maxDotenv bounds such a file, in bytes.
const maxDotenv = 1 << 20

// providerVariable matches what is taken of the files.
var providerVariable = lazyregexp.New(`^(?:(?:OPENAI|ANTHROPIC)_(?:API_KEY|BASE_URL|MODEL)|[A-Z][A-Z0-9_]*_API_KEY|HF_TOKEN)$`)

// mentionsProvider finds in any text what may have been meant for mini.
var mentionsProvider = lazyregexp.New(`(?m)^[ \t]*(?:export[ \t]+)?[A-Z0-9_]*(?:_API_KEY|_BASE_URL|_MODEL)[ \t]*=`)

// userDotenv is the user's own file of keys; "" where the system does not say.
func userDotenv() string {
	if path := userConfig(); path != "" {
		return filepath.Join(filepath.Dir(path), ".env")
	}
	return ""
}

// folderDotenv is the file in the working directory, and inFolder begins the
// names of the layers whose values are from it.
const (
	folderDotenv = ".env"
	inFolder     = "./.env: "
)

// loadDotenv puts what the two files say into this process's environment, where
// it is not set already. The addresses in the working directory's file stay out
// of it: providerURL reads them, so that it is known where they are from.
func loadDotenv() error {
	if path := userDotenv(); path != "" {
		own, err := readDotenv(path)
		if err != nil {
			return err
		}
		if err := setMissing(own); err != nil {
			return err
		}
	}
	here, err := readDotenv(folderDotenv)
	if err != nil {
		return err
	}
	maps.DeleteFunc(here, func(name, _ string) bool { return strings.HasSuffix(name, "_BASE_URL") })
	return setMissing(here)
}

// providerURL is the value of a variable with the address of a provider, and the
// name of the layer that has it: the variable, or the working directory's file.
func providerURL(name string) (address, layer string) {
	if address = os.Getenv(name); address != "" {
		return address, name
	}
	here, _ := readDotenv(folderDotenv) // loadDotenv returned the error
	return here[name], inFolder + name
}

// isFolderURL reports whether the address of a model is from the working
// directory's file.
func isFolderURL(cfg *configs.Resolved) bool {
	o, ok := cfg.Origin("model.base_url")
	return ok && strings.HasPrefix(o.Layer, inFolder)
}

// keyOf is the key that is sent to the address of a model; every use of a key
// takes it from here. An address from the working directory's file gets only the
// key of that file, whichever variable has the key, and no headers.
func keyOf(cfg *configs.Resolved) (string, error) {
	key := os.Getenv(cfg.Model.APIKeyEnv)
	if !isFolderURL(cfg) {
		return key, nil
	}
	here, err := readDotenv(folderDotenv)
	if err != nil {
		return "", err
	}
	o, _ := cfg.Origin("model.base_url")
	name := strings.TrimPrefix(o.Layer, inFolder)
	if len(cfg.Model.Headers) > 0 { // the file has none
		return "", usagef("./.env sets %s, and model.headers are not from ./.env: a folder's file must not choose where your headers are sent; "+
			"take model.headers out of the settings, or set %s in your shell", name, name)
	}
	if key == "" || key != here[cfg.Model.APIKeyEnv] {
		return "", usagef("./.env sets %s, and the key in %s is not from ./.env: a folder's file must not choose where your key is sent; "+
			"set both in ./.env, or %s in your shell", name, cfg.Model.APIKeyEnv, name)
	}
	return key, nil
}

func setMissing(values map[string]string) error {
	for name, value := range values {
		if os.Getenv(name) != "" {
			continue
		}
		if err := os.Setenv(name, value); err != nil {
			return usagef("%s in a .env file: %v", name, err)
		}
	}
	return nil
}

// readDotenv is what a file has of providers' variables. A file that is not
// there has nothing, and so has one that cannot be read as what it is called,
// unless it seems to have what mini looks for.
func readDotenv(path string) (map[string]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil, nil //nolint:nilnil // there is no such file
	}
	f, err := os.Open(path) //nolint:gosec // G304: its name is fixed
	if errors.Is(err, os.ErrPermission) {
		return nil, usagef("%s cannot be read: make it readable, or set the variables in your shell", path)
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
	if err != nil { // its text may hold a key, and is not repeated
		if mentionsProvider.Match(data) {
			return nil, usagef("%s cannot be read: lines have the form NAME=value; mend it, or set the variables in your shell", path)
		}
		return nil, nil //nolint:nilnil // another program's
	}
	values := map[string]string{}
	for name, value := range all {
		if providerVariable.MatchString(name) && value != "" {
			values[name] = value
		}
	}
	return values, nil
}
