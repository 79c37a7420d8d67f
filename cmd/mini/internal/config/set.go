package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/cmd/mini/internal/app"
	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/cmd/mini/internal/settings"
	"github.com/minibench/mini/cmd/mini/internal/ui/ask"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/text"
	"github.com/minibench/mini/internal/usage"
	"github.com/minibench/mini/internal/userdirs"
	"github.com/minibench/mini/internal/userfiles"
)

// newConfigSet returns the command mini config set.
func newConfigSet(a *app.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set [KEY VALUE...]",
		Short: "Change a setting or store a key",
		Long: `Sets KEY in your own configuration file (mini config path). Comments and order
are preserved. To set several, pass KEY=VALUE KEY=VALUE. A list takes several
values.

To store the key of a provider, pass the name of its variable, for example
OPENAI_API_KEY. mini asks for the key without showing it, or reads it from stdin
with -. It stores the key in the file .env beside config.yaml, which only you
can read.`,
		Example: `  mini config set model.model_name gpt-5-mini
  mini config set agent.step_limit=100 agent.cost_limit=1.50
  mini config set OPENAI_API_KEY
  pass show openai | mini config set OPENAI_API_KEY -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return usage.Wrap(setConfig(cmd.Context(), a, args))
		},
	}
	cmd.Flags().SetInterspersed(false) // a value may begin with -
	return cmd
}

func newConfigUnset(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "unset [KEY...]",
		Short: "Remove a setting or a key",
		Long: `Removes each KEY from your own configuration file, so that its default applies.
A section is removed with all its settings. The name of a variable, such as
OPENAI_API_KEY, is removed from the file .env beside it.`,
		Example: "  mini config unset agent.step_limit\n  mini config unset OPENAI_API_KEY",
		RunE:    func(cmd *cobra.Command, args []string) error { return usage.Wrap(unsetConfig(cmd.Context(), a, args)) },
	}
}

func newConfigPath(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:     "path",
		Short:   "Print the path of your own configuration file",
		Example: "  mini config path",
		Args:    cmdutil.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			path, err := ownConfig()
			if err == nil {
				_, err = fmt.Fprintln(a.Out, path)
			}
			return err
		},
	}
}

// ownConfig returns the path of the user's configuration file.
func ownConfig() (string, error) {
	path := userdirs.ConfigFile()
	if path == "" {
		return "", usage.Errorf("no folder for your own settings: set HOME, or XDG_CONFIG_HOME to an absolute path")
	}
	return path, nil
}

// ReadUserConfig reads the user's configuration file.
func ReadUserConfig() (*configs.Document, error) {
	path, err := ownConfig()
	if err != nil {
		return nil, err
	}
	text, err := userfiles.Read(path)
	if err != nil {
		return nil, err
	}
	return configs.OpenDocument(path, text)
}

// assignment is a setting with its new values.
type assignment struct {
	key    string
	values []string
}

// setConfig runs mini config set.
func setConfig(ctx context.Context, a *app.App, args []string) error {
	parsed, err := parseAssignments(args)
	if err != nil {
		return err
	}
	if len(parsed) == 1 && isVariable(parsed[0].key) {
		return setVariable(ctx, a, parsed[0])
	}
	for _, a := range parsed {
		if err := checkKey(a.key); err != nil {
			return err
		}
	}
	if key := parsed[0].key; len(parsed[0].values) == 0 {
		return usage.Errorf("set %s: no value; run mini config set %[1]s VALUE", key)
	}
	path, err := changeConfig(ctx, func(d *configs.Document) error {
		for _, a := range parsed {
			if err := d.Set(a.key, a.values...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, given := range parsed {
		if err := notef(a, "%s is now %s, in %s%s", given.key, strings.Join(given.values, " "), path, overrideNote(given.key)); err != nil {
			return err
		}
	}
	return nil
}

// notef prints a sanitized line on stderr.
func notef(a *app.App, format string, args ...any) error {
	_, err := fmt.Fprintln(a.Err, "mini: "+text.Printable(fmt.Sprintf(format, args...)))
	return err
}

// parseAssignments parses the arguments: KEY VALUE..., or any number of KEY=VALUE.
func parseAssignments(args []string) ([]assignment, error) {
	if len(args) == 0 {
		return nil, usage.Errorf("no setting given; run mini config set KEY VALUE")
	}
	if !strings.Contains(args[0], "=") {
		return []assignment{{args[0], args[1:]}}, nil
	}
	var parsed []assignment
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		switch {
		case isVariable(key):
			return nil, keyArgumentError(key)
		case !ok:
			return nil, usage.Errorf("parse %.60q: not KEY=VALUE, the form for several settings", arg)
		}
		parsed = append(parsed, assignment{key, []string{value}})
	}
	return parsed, nil
}

// checkKey returns an error if key is not the name of a setting or a section. For the
// name of a variable or a secret, the error says where to store the value.
func checkKey(key string) error {
	last := key[strings.LastIndexByte(key, '.')+1:]
	switch {
	case slices.Contains(configs.Keys(), key):
		return nil
	case isVariable(key):
		return usage.Errorf("%s is a variable; set it separately: mini config set %s", key, key)
	case configs.LooksSecret(last) && strings.HasPrefix(key, "environment."):
		return usage.Errorf("%.80s: keys are not settings, because mini writes settings to files; add the variable with the key to environment.forward_env", key)
	case configs.LooksSecret(last):
		return usage.Errorf("%.80s: keys are not settings, because mini writes settings to files; mini config set OPENAI_API_KEY asks for one and stores it in %s", key, configs.UserDotenv())
	}
	_, err := configs.KeysUnder(key)
	return err
}

// changeConfig applies change to the user's configuration file and stores the result
// if it is valid. It returns the path of the file.
func changeConfig(ctx context.Context, change func(*configs.Document) error) (string, error) {
	path, err := ownConfig()
	if err != nil {
		return "", err
	}
	return path, userfiles.Update(ctx, path, func(old []byte) ([]byte, error) {
		d, err := configs.OpenDocument(path, old)
		if err != nil {
			return nil, fmt.Errorf("%w; correct it with mini config edit", err)
		}
		if err := change(d); err != nil {
			return nil, err
		}
		if errs := checkDocument(d); len(errs) > 0 {
			more := ""
			if n := len(errs) - 1; n > 0 {
				more = fmt.Sprintf(" (and %d more)", n)
			}
			return nil, usage.Errorf("%w%s; nothing was changed", errs[0], more)
		}
		return d.Bytes(), nil
	})
}

// checkDocument checks a configuration file alone and on top of each built-in configuration.
// It returns each error once.
func checkDocument(d *configs.Document) []error {
	layer, err := d.Layer()
	errs := configs.SplitErrors(err)
	for kind := range BuiltinConfigByKind {
		cfg, kindErrs := checkLayers(kind, layer)
		if cfg != nil {
			kindErrs = append(kindErrs, configs.SplitErrors(settings.CheckModelNames(cfg))...)
		}
		for _, kindErr := range kindErrs {
			if !slices.ContainsFunc(errs, func(earlier error) bool { return earlier.Error() == kindErr.Error() }) {
				errs = append(errs, kindErr)
			}
		}
	}
	return sortByLine(errs)
}

// overrideNote returns a note if an environment variable overrides the setting in the
// user's configuration file, else "".
func overrideNote(key string) string {
	if name := settings.OverridingVariable(key); name != "" {
		return "; but the variable " + name + " overrides it"
	}
	return ""
}

// unsetConfig runs mini config unset.
func unsetConfig(ctx context.Context, a *app.App, keys []string) error {
	if len(keys) == 0 {
		return usage.Errorf("no setting given; run mini config unset KEY")
	}
	for _, key := range keys {
		if err := unsetOne(ctx, a, key); err != nil {
			return err
		}
	}
	return nil
}

// unsetOne removes a setting or a variable and prints the result.
func unsetOne(ctx context.Context, a *app.App, key string) error {
	if isVariable(key) {
		return unsetVariable(ctx, a, key)
	}
	removed := false
	path, err := changeConfig(ctx, func(d *configs.Document) (err error) {
		if removed, err = d.Unset(key); err != nil || removed {
			return err
		}
		_, err = configs.KeysUnder(key) // an error if the key is unknown
		return err
	})
	switch {
	case err != nil:
		return err
	case !removed:
		return notef(a, "%s was not set in %s", key, path)
	}
	return notef(a, "removed %s from %s", key, path)
}

// isVariable reports whether name looks like an environment variable in upper case.
func isVariable(name string) bool {
	return configs.IsVariable(name) && strings.ToUpper(name) == name
}

// setVariable stores a key in the user's .env file.
func setVariable(ctx context.Context, a *app.App, given assignment) error {
	name := given.key
	if err := checkKeyVariable(name); err != nil {
		return err
	}
	if len(given.values) > 1 || len(given.values) == 1 && given.values[0] != "-" {
		return keyArgumentError(name)
	}
	key, err := readKey(ctx, a, name, len(given.values) == 1)
	if err != nil {
		return err
	}
	path, err := storeKey(ctx, name, key)
	if err != nil {
		return err
	}
	note := ""
	if os.Getenv(name) != "" {
		note = "; but the variable of your shell overrides it"
	}
	return notef(a, "stored %s in %s, which only you can read%s", name, path, note)
}

// checkKeyVariable returns an error if name is not a variable for a key. The error
// says what to do instead.
func checkKeyVariable(name string) error {
	old, _ := configs.FindOldName("$" + name)
	setting, _, _ := strings.Cut(old.New, " ")
	for _, variables := range configs.ProviderVariables {
		for _, v := range variables {
			if v.Name == name {
				setting = v.Key
			}
		}
	}
	switch {
	case setting != "":
		return usage.Errorf("%s is a setting in mini: mini config set %s VALUE", name, setting)
	case strings.HasPrefix(name, "MSWEA_"):
		return usage.Errorf("%s: mini stores only its own settings and keys; mini config show lists the settings", name)
	case !configs.ProviderVariable.MatchString(name):
		return usage.Errorf("%.60s: mini stores only variables that end with _KEY; export it in your shell", name)
	}
	return nil
}

// keyArgumentError rejects a key on the command line. The error does not contain
// the key.
func keyArgumentError(name string) error {
	if err := checkKeyVariable(name); err != nil {
		return err
	}
	return usage.Errorf("other users can see a key on the command line, and the shell saves it in its history: "+
		"omit it, and mini asks for it; or pipe it: mini config set %s - <FILE", name)
}

// maxKeyInput is how many bytes of stdin are read for a key; the rest is ignored.
const maxKeyInput = 64 << 10

// readKey reads the key for a variable from stdin if fromStdin is true. Otherwise it
// asks for the key on the terminal.
func readKey(ctx context.Context, a *app.App, name string, fromStdin bool) (string, error) {
	var key string
	switch {
	case fromStdin:
		data, err := io.ReadAll(io.LimitReader(a.In, maxKeyInput))
		if err != nil {
			return "", fmt.Errorf("read %s: %w", name, err)
		}
		key = strings.TrimSpace(string(data))
	case !a.Interactive:
		return "", usage.Errorf("no terminal to ask for the key; pipe it: mini config set %s - <FILE", name)
	default:
		err := WithPrompter(a, func(p *ask.Prompter) (err error) {
			key, err = p.AskSecret(ctx, name+" (not shown)")
			return err
		})
		if err != nil {
			return "", err
		}
	}
	if err := userfiles.ValidateKey(key); err != nil {
		return "", usage.Errorf("not a key: %w; nothing was changed", err)
	}
	return key, nil
}

// storeKey stores a key in the user's .env file and returns the path of the file.
func storeKey(ctx context.Context, name, key string) (string, error) {
	if _, err := ownConfig(); err != nil {
		return "", err
	}
	path := configs.UserDotenv()
	return path, userfiles.Update(ctx, path, func(old []byte) ([]byte, error) { return userfiles.SetVariable(path, old, name, key) })
}

// unsetVariable removes a key from the user's .env file.
func unsetVariable(ctx context.Context, a *app.App, name string) error {
	if _, err := ownConfig(); err != nil {
		return err
	}
	path, removed := configs.UserDotenv(), false
	err := userfiles.Update(ctx, path, func(old []byte) (text []byte, err error) {
		text, removed, err = userfiles.UnsetVariable(path, old, name)
		return text, err
	})
	note := ""
	if os.Getenv(name) != "" {
		note = "; your shell still sets it"
	}
	switch {
	case err != nil:
		return err
	case !removed:
		return notef(a, "%s was not set in %s%s", name, path, note)
	}
	return notef(a, "removed %s from %s%s", name, path, note)
}

// interruptedError means that the user pressed Ctrl-C instead of answering.
type interruptedError struct{}

func (interruptedError) Error() string { return "nothing was changed" }
func (interruptedError) Unwrap() error { return agent.ErrInterrupted }

// WithPrompter calls askQuestions with a prompter on the terminal. If the user presses
// Ctrl-C, WithPrompter returns an interruptedError; at the end of the input, a usage error.
func WithPrompter(a *app.App, askQuestions func(*ask.Prompter) error) error {
	out := a.Err
	if m, ok := a.Err.(*cmdutil.Messages); ok {
		m.Divert(func(string) {}, false)
		defer m.Release()
		out = m.DirectWriter()
	}
	err := askQuestions(ask.New(a.In, out))
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, agent.ErrInterrupted):
		return interruptedError{}
	case errors.Is(err, ask.ErrEOF):
		return usage.Errorf("%w; nothing was changed", ask.ErrEOF)
	}
	return err
}
