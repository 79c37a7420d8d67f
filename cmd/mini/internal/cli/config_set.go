package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minibench/mini/agent"
	"github.com/minibench/mini/cmd/mini/internal/ask"
	"github.com/minibench/mini/cmd/mini/internal/home"
	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/runner/report"
)

func newConfigSet(s Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set [KEY VALUE...]",
		Short: "Change a setting in your own file, or keep a key",
		Long: `Sets KEY in your own file of settings (mini config path), whose comments and
order stay. Several at once are KEY=VALUE KEY=VALUE; a list takes several
values. What is left out is asked for, on a terminal.

A key is set by the name of its variable, OPENAI_API_KEY for instance. It is
asked for and not shown, or read from stdin with -, and kept in the file .env
beside the settings, which only you can read.`,
		Example: `  mini config set model.model_name gpt-5-mini
  mini config set agent.step_limit=100 agent.cost_limit=1.50
  mini config set OPENAI_API_KEY
  pass show openai | mini config set OPENAI_API_KEY -`,
		RunE: func(cmd *cobra.Command, args []string) error { return before(setConfig(cmd.Context(), s, args)) },
	}
	cmd.Flags().SetInterspersed(false) // a value may begin with -
	return cmd
}

func newConfigUnset(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "unset [KEY...]",
		Short: "Take settings out of your own file, or a key",
		Long: `Takes each KEY out of your own file of settings, so that the default holds
again; a section goes with all below it. The name of a variable, as
OPENAI_API_KEY, takes that out of the file .env beside it.`,
		Example: "  mini config unset agent.step_limit\n  mini config unset OPENAI_API_KEY",
		RunE:    func(cmd *cobra.Command, args []string) error { return before(unsetConfig(cmd.Context(), s, args)) },
	}
}

func newConfigPath(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:     "path",
		Short:   "Print where your own file of settings is, or would be",
		Example: "  mini config path",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			path, err := ownConfig()
			if err == nil {
				_, err = fmt.Fprintln(s.Out, path)
			}
			return err
		},
	}
}

// ownConfig is userConfig where there has to be one.
func ownConfig() (string, error) {
	path := userConfig()
	if path == "" {
		return "", usagef("there is no place for settings of your own: set HOME, or XDG_CONFIG_HOME to a whole path")
	}
	return path, nil
}

// ownDocument is the user's own file as it is now.
func ownDocument() (*configs.Document, error) {
	path, err := ownConfig()
	if err != nil {
		return nil, err
	}
	text, err := home.Read(path)
	if err != nil {
		return nil, err
	}
	return configs.OpenDocument(path, text)
}

// assignment is a setting and what it is to be; nothing where that is to be
// asked.
type assignment struct {
	key    string
	values []string
}

// setConfig is `mini config set`.
func setConfig(ctx context.Context, s Streams, args []string) error {
	all, err := assignments(ctx, s, args)
	if err != nil {
		return err
	}
	if len(all) == 1 && isVariable(all[0].key) {
		return setVariable(ctx, s, all[0])
	}
	for _, one := range all {
		if err := settable(one.key); err != nil {
			return err
		}
	}
	if len(all[0].values) == 0 {
		value, err := askValue(ctx, s, all[0].key)
		if err != nil {
			return err
		}
		all[0].values = []string{value}
	}
	path, err := changeConfig(ctx, func(d *configs.Document) error {
		for _, one := range all {
			if err := d.Set(one.key, one.values...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, one := range all {
		if err := sayf(s, "%s is %s now, in %s%s", one.key, strings.Join(one.values, " "), path, outdone(one.key)); err != nil {
			return err
		}
	}
	return nil
}

// sayf prints a line for people, whatever is in it.
func sayf(s Streams, format string, args ...any) error {
	_, err := fmt.Fprintln(s.Err, "mini: "+report.Printable(fmt.Sprintf(format, args...)))
	return err
}

// assignments are what the arguments say: KEY VALUE..., or any number of
// KEY=VALUE. Without any, KEY is asked for.
func assignments(ctx context.Context, s Streams, args []string) ([]assignment, error) {
	if len(args) == 0 {
		key, err := askKey(ctx, s, "set KEY VALUE", nil)
		return []assignment{{key: key}}, err
	}
	if !strings.Contains(args[0], "=") {
		return []assignment{{args[0], args[1:]}}, nil
	}
	var all []assignment
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		switch {
		case isVariable(key):
			return nil, keyOnLine(key)
		case !ok:
			return nil, usagef("%.60q is no KEY=VALUE; several settings at once have that form", arg)
		}
		all = append(all, assignment{key, []string{value}})
	}
	return all, nil
}

// settable refuses what is no setting, or must not be one, before anything is
// read.
func settable(key string) error {
	last := key[strings.LastIndexByte(key, '.')+1:]
	switch {
	case slices.Contains(configs.Keys(), key):
		return nil
	case isVariable(key):
		return usagef("%s is a variable; set it by itself: mini config set %s", key, key)
	case configs.LooksSecret(last) && strings.HasPrefix(key, "environment."):
		return usagef("%.80s: keys are not kept among settings, which are written to files; name the variable that has it in environment.forward_env", key)
	case configs.LooksSecret(last):
		return usagef("%.80s: keys are not kept among settings, which are written to files; mini config set OPENAI_API_KEY asks for one and keeps it in %s", key, userDotenv())
	}
	_, err := configs.Under(key)
	return err
}

// changeConfig changes the user's own file, if what comes of it is right.
func changeConfig(ctx context.Context, change func(*configs.Document) error) (string, error) {
	path, err := ownConfig()
	if err != nil {
		return "", err
	}
	return path, home.Change(ctx, path, func(old []byte) ([]byte, error) {
		d, err := configs.OpenDocument(path, old)
		if err != nil {
			return nil, fmt.Errorf("%w; mini config edit opens it", err)
		}
		if err := change(d); err != nil {
			return nil, err
		}
		if wrong := wrongIn(d); len(wrong) > 0 {
			more := ""
			if n := len(wrong) - 1; n > 0 {
				more = fmt.Sprintf(" (and %d more)", n)
			}
			return nil, usagef("%w%s; nothing was changed", wrong[0], more)
		}
		return d.Bytes(), nil
	})
}

// wrongIn are the mistakes in a file of settings, for a batch as for a task.
func wrongIn(d *configs.Document) []error {
	l, err := d.Layer()
	errs := append(configs.All(err), checkLayers(l)...)
	for _, kind := range configKinds {
		base, err := configs.Shipped(kind)
		if err != nil {
			return append(errs, err)
		}
		cfg, err := configs.Merge(base, l)
		found := configs.All(err)
		if cfg != nil {
			found = append(found, configs.All(checkModelName(cfg))...)
		}
		for _, e := range found {
			if !slices.ContainsFunc(errs, func(known error) bool { return known.Error() == e.Error() }) {
				errs = append(errs, e)
			}
		}
	}
	return byLine(errs)
}

// outdone names what wins over a setting of the user's own file; "" for nothing.
func outdone(key string) string {
	names, _ := peerEnviron(os.Environ())
	for _, name := range names {
		if peerVariables[name].key == key {
			return "; but " + name + " is set, and wins"
		}
	}
	return ""
}

// unsetConfig is `mini config unset`.
func unsetConfig(ctx context.Context, s Streams, keys []string) error {
	if len(keys) == 0 {
		d, err := ownDocument()
		if err != nil {
			return err
		}
		key, err := askKey(ctx, s, "unset KEY", d.Keys())
		if err != nil {
			return err
		}
		keys = []string{key}
	}
	for _, key := range keys {
		if err := unsetOne(ctx, s, key); err != nil {
			return err
		}
	}
	return nil
}

func unsetOne(ctx context.Context, s Streams, key string) error {
	if isVariable(key) {
		return unsetVariable(ctx, s, key)
	}
	gone := false
	path, err := changeConfig(ctx, func(d *configs.Document) (err error) {
		if gone, err = d.Unset(key); err != nil || gone {
			return err
		}
		_, err = configs.Under(key) // unknown, or only not set
		return err
	})
	switch {
	case err != nil:
		return err
	case !gone:
		return sayf(s, "%s was not set in %s", key, path)
	}
	return sayf(s, "%s is no longer set in %s", key, path)
}

// isVariable says that what is to be set is the key of a provider, or another
// variable.
func isVariable(name string) bool {
	return configs.IsVariable(name) && strings.ToUpper(name) == name
}

// setVariable keeps a key in the user's .env file.
func setVariable(ctx context.Context, s Streams, one assignment) error {
	name := one.key
	if err := keepable(name); err != nil {
		return err
	}
	if len(one.values) > 1 || len(one.values) == 1 && one.values[0] != "-" {
		return keyOnLine(name)
	}
	key, err := readKey(ctx, s, name, len(one.values) == 1)
	if err != nil {
		return err
	}
	path, err := keepKey(ctx, name, key)
	if err != nil {
		return err
	}
	more := ""
	if os.Getenv(name) != "" {
		more = "; your shell sets it too, and wins"
	}
	return sayf(s, "%s is kept in %s, which only you can read%s", name, path, more)
}

// keepable refuses variables that are not keys of models, and says what they are
// instead.
func keepable(name string) error {
	setting := peerVariables[name].key
	for _, variables := range classVariables {
		for _, v := range variables {
			if v.name == name {
				setting = v.key
			}
		}
	}
	switch {
	case setting != "":
		return usagef("%s is a setting here: mini config set %s VALUE", name, setting)
	case strings.HasPrefix(name, "MSWEA_"):
		return usagef("%s: mini keeps settings of its own, and keys; mini config show has the settings", name)
	case !providerVariable.MatchString(name):
		return usagef("%.60s: only variables that end with _API_KEY are kept; export it in your shell", name)
	}
	return nil
}

// keyOnLine refuses a key among the arguments, and repeats nothing of it.
func keyOnLine(name string) error {
	if err := keepable(name); err != nil {
		return err
	}
	return usagef("a key on the command line can be seen by others and stays in the shell's history: "+
		"leave it out, and mini asks for it, or pipe it: mini config set %s - <FILE", name)
}

// maxKeyInput bounds what is read as a key, in bytes.
const maxKeyInput = 64 << 10

// readKey asks for a key, or reads it from stdin.
func readKey(ctx context.Context, s Streams, name string, piped bool) (string, error) {
	var key string
	switch {
	case piped:
		data, err := io.ReadAll(io.LimitReader(s.In, maxKeyInput))
		if err != nil {
			return "", fmt.Errorf("read %s: %w", name, err)
		}
		key = strings.TrimSpace(string(data))
	case !s.Terminal:
		return "", usagef("there is no terminal to ask for the key on; pipe it: mini config set %s - <FILE", name)
	default:
		err := asking(s, func(a *ask.Asker) (err error) {
			key, err = a.Secret(ctx, name+" (it is not shown)")
			return err
		})
		if err != nil {
			return "", err
		}
	}
	if err := home.CheckKey(key); err != nil {
		return "", usagef("that is no key: %w; nothing was changed", err)
	}
	return key, nil
}

// keepKey puts a key into the user's .env file.
func keepKey(ctx context.Context, name, key string) (string, error) {
	if _, err := ownConfig(); err != nil {
		return "", err
	}
	path := userDotenv()
	return path, home.Change(ctx, path, func(old []byte) ([]byte, error) { return home.SetVariable(path, old, name, key) })
}

func unsetVariable(ctx context.Context, s Streams, name string) error {
	if _, err := ownConfig(); err != nil {
		return err
	}
	path, gone := userDotenv(), false
	err := home.Change(ctx, path, func(old []byte) (text []byte, err error) {
		text, gone, err = home.UnsetVariable(path, old, name)
		return text, err
	})
	more := ""
	if os.Getenv(name) != "" {
		more = "; your shell sets it"
	}
	switch {
	case err != nil:
		return err
	case !gone:
		return sayf(s, "%s was not set in %s%s", name, path, more)
	}
	return sayf(s, "%s is no longer kept in %s%s", name, path, more)
}

// askKey asks which setting is meant.
func askKey(ctx context.Context, s Streams, usage string, among []string) (key string, err error) {
	if !s.Terminal {
		return "", usagef("which setting? Say mini config %s", usage)
	}
	err = asking(s, func(a *ask.Asker) (err error) {
		if strings.HasPrefix(usage, "unset") {
			if len(among) == 0 {
				return usagef("nothing is set in %s", filepath.Base(userConfig()))
			}
			var i int
			if err := a.Say("Set in your own file:"); err != nil {
				return err
			}
			i, err = a.Choice(ctx, "Which is to go", among, 0)
			key = among[i]
			return err
		}
		for key == "" && err == nil {
			key, err = a.Line(ctx, "Which setting, as agent.step_limit (mini config show lists them)", "")
		}
		return err
	})
	return key, err
}

// askValue asks what a setting is to be.
func askValue(ctx context.Context, s Streams, key string) (value string, err error) {
	if !s.Terminal {
		return "", usagef("%s: to what? Say mini config set %s VALUE", key, key)
	}
	d, err := ownDocument()
	if err != nil {
		return "", err
	}
	old, _ := d.Value(key)
	err = asking(s, func(a *ask.Asker) (err error) {
		for value == "" && err == nil {
			value, err = a.Line(ctx, key, report.Printable(old))
		}
		return err
	})
	return value, err
}

// unchanged is Ctrl-C in place of an answer.
type unchanged struct{}

func (unchanged) Error() string { return "nothing was changed" }
func (unchanged) Unwrap() error { return agent.ErrInterrupted }

// asking asks questions on the terminal. While it does, Ctrl-C has no other
// meaning than that nothing is to be changed.
func asking(s Streams, questions func(*ask.Asker) error) error {
	out := s.Err
	if m, ok := s.Err.(*messages); ok {
		m.divert(func(string) {}, false)
		defer m.release()
		out = direct{m}
	}
	err := questions(ask.New(s.In, out))
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, agent.ErrInterrupted):
		return unchanged{}
	case errors.Is(err, ask.ErrEnd):
		return usagef("%w; nothing was changed", ask.ErrEnd)
	}
	return err
}
