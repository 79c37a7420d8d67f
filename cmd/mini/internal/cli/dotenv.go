package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/joho/godotenv"
)

// Keys are configured by the environment, and many keep them in a file named
// .env. The user's own, beside the configuration, is trusted. One in the
// working directory may be part of a repository that somebody else wrote: it
// may bring a key, and the address that the key is for, but no address for a key
// from elsewhere, which would then be sent there. Neither brings variables that
// are not a provider's; PATH has no business in it.

// maxDotenv bounds such a file, in bytes.
const maxDotenv = 1 << 20

// providerVariable matches what is taken of the files.
var providerVariable = regexp.MustCompile(`^(?:(?:OPENAI|ANTHROPIC)_(?:API_KEY|BASE_URL|MODEL)|[A-Z][A-Z0-9_]*_API_KEY|HF_TOKEN)$`)

// mentionsProvider finds in any text what may have been meant for mini.
var mentionsProvider = regexp.MustCompile(`(?m)^[ \t]*(?:export[ \t]+)?[A-Z0-9_]*(?:_API_KEY|_BASE_URL|_MODEL)[ \t]*=`)

// userDotenv is the user's own file of keys; "" where the system does not say.
func userDotenv() string {
	if path := userConfig(); path != "" {
		return filepath.Join(filepath.Dir(path), ".env")
	}
	return ""
}

// loadDotenv puts what the two files say into this process's environment, where
// it is not set already.
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
	here, err := readDotenv(".env")
	if err != nil {
		return err
	}
	for name := range here {
		provider, isURL := strings.CutSuffix(name, "_BASE_URL")
		if isURL && os.Getenv(provider+"_API_KEY") != "" {
			return usagef("./.env sets %s, and %s_API_KEY comes from elsewhere: a key is not sent to where a folder's file says; set both in one place", name, provider)
		}
	}
	return setMissing(here)
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
