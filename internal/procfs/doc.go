// Package procfs reads the small files that the kernel writes when they are
// read: of /proc, and of control groups.
//
// An os.File asks the kernel four more things about each file, to find out that it
// can't be waited for. A sidecar beside one server at rest reads a hundred such files a
// second, which is most of what it does then, so it reads them by hand.
package procfs
