package cli

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/minibench/mini/configs"
	"github.com/minibench/mini/internal/usage"
)

// otherFlags are flags of Claude Code, Codex and aider, and what does the same.
var otherFlags = map[string]string{
	"r": "--resume", "C": "-c environment.cwd=DIR", "cd": "-c environment.cwd=DIR", "permission-mode": "-y, or rules of the policy (docs/policy.md)",
	"verbose": "--output-format stream-json alone, or --events FILE",
	"prompt":  "-t TASK", "message": "-t TASK", "json": "-p --output-format stream-json", "max-turns": "-c agent.step_limit=N",
	"max-budget-usd": "-c agent.cost_limit=DOLLARS", "allowedTools": "rules of the policy (docs/policy.md)",
	"yes": "-y", "yes-always": "-y", "full-auto": "-y", "dangerously-skip-permissions": "-y",
}

// flagError converts an error of the flag parser into a usage error that names a
// similar flag, an alternative or the help of the command.
func flagError(cmd *cobra.Command, err error) error {
	if usageErr, ok := errors.AsType[*usage.Error](err); ok {
		return usageErr
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return usage.Errorf("parse --%s: %.60q is not %s; see %s --help",
			invalid.GetFlag().Name, invalid.GetValue(), valueKind(invalid.GetFlag().Value.Type()), cmd.CommandPath())
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if n, ok := configs.FindOldName("--" + unknown.GetSpecifiedName()); ok && cmd.Name() == "eval" {
			return usage.Errorf("%s: %s", n.Old, n.Why)
		}
		if answer := otherFlags[unknown.GetSpecifiedName()]; answer != "" && cmd == cmd.Root() {
			return usage.Errorf("%w; use %s", err, answer)
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		if near := configs.ClosestName(unknown.GetSpecifiedName(), names); near != "" && len(unknown.GetSpecifiedName()) > 1 {
			return usage.Errorf("%w; did you mean --%s?", err, near)
		}
	}
	return usage.Errorf("%w; see %s --help", err, cmd.CommandPath())
}

// valueKind describes the values of a flag in words instead of Go's type names.
func valueKind(flagType string) string {
	switch flagType {
	case "bool":
		return "true or false"
	case "float64":
		return "a number"
	case "uint64":
		return "a whole number of at least 0"
	default:
		return "a whole number"
	}
}
