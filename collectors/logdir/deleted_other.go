//go:build !linux

package logdir

// search finds nothing where no procfs tells of descriptors; absent, not 0.
func (h *holder) search(string) {}
