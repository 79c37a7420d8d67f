package settings

import (
	"fmt"
	"io"

	"github.com/minibench/mini/cmd/mini/internal/cmdutil"
	"github.com/minibench/mini/configs"
	modelopen "github.com/minibench/mini/model/open"
)

// PrintCostNote validates the cost limits and prints a note about limits that cannot be
// enforced.
func PrintCostNote(w io.Writer, cfg *configs.Resolved) error {
	if !cfg.UsesModel() {
		return nil
	}
	note, err := modelopen.CheckCostLimits(cfg)
	if err != nil || note == "" {
		return err
	}
	_, err = fmt.Fprintln(w, cmdutil.FormatNote(note))
	return err
}
