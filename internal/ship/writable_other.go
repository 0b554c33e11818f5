//go:build !unix

package ship

// writable can't be told without writing; the first line that waits tells it.
func writable(string) error { return nil }
