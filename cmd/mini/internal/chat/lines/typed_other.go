//go:build !unix

package lines

// whenContinued does nothing where a process cannot be stopped.
func whenContinued(func()) func() { return func() {} }

func suspend() {}
