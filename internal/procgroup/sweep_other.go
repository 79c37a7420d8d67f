//go:build darwin

package procgroup

func killTaggedProcesses(string) {}
