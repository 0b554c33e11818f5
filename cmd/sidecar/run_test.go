package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestUsersMayGo: the library that lets users in reads the web config for each
// request. With the users taken out of the file while the sidecar runs, everybody
// comes through, and nobody of them may read lines or reload.
func TestUsersMayGo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "web.yml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("basic_auth_users: {ann: x}\n")
	trusts := usersOnly(file)
	if !trusts() {
		t.Error("there is a user, and he is not trusted")
	}
	write("tls_server_config: {}\n")
	if trusts() {
		t.Error("the users are gone, and everybody is trusted")
	}
	write("basic_auth_users: {ann: x}\n")
	if !trusts() {
		t.Error("the user is back, and not trusted")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if trusts() || usersOnly("")() {
		t.Error("without a file there is no user, and everybody is trusted")
	}
}
