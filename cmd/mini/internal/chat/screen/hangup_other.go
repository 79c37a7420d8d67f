//go:build !unix

package screen

import "context"

// listen does nothing: there are no hangups here.
func (*Screen) listen(context.Context) {}
