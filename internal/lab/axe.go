package lab

import (
	"context"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// axe-core looks for what keeps people who can't see or use a mouse from a page.
// It is pinned by the sum that npm's registry gives for this version; nothing of
// it is in the product.
const (
	axeVersion = "4.10.3"
	axeSum     = "Xm7bpRXnDSX2YE2YFfBk2FnF0ep6tmG7xPh8iHee8MIcrgq762Nkce856dYtJYLkuIoYZvGfTs/PbZhideTcEg=="
)

// Axe is the source of axe-core, to be run in a page.
func Axe() (source string, err error) {
	home, err := once("axe-core-"+axeVersion, "axe-core "+axeVersion, "to check that the page can be used by everybody", func(ctx context.Context, dir string) error {
		npm, err := exec.LookPath("npm")
		if err != nil {
			return fmt.Errorf("no npm on the PATH to fetch it with: %w", err)
		}
		cmd := exec.Command(npm, "pack", "--silent", "--ignore-scripts", "--cache", filepath.Join(Cache(), "npm"), "--pack-destination", dir, "axe-core@"+axeVersion)
		cmd.Dir = dir // no package.json of somebody else
		if out, err := run(ctx, cmd); err != nil {
			return fmt.Errorf("npm pack: %w: %s", err, tail(out))
		}
		archive := filepath.Join(dir, "axe-core-"+axeVersion+".tgz")
		text, err := os.ReadFile(archive)
		if err != nil {
			return err
		}
		if sum := sha512.Sum512(text); base64.StdEncoding.EncodeToString(sum[:]) != axeSum {
			return fmt.Errorf("axe-core-%s.tgz is not the one that was pinned: its sha512 is %s", axeVersion, base64.StdEncoding.EncodeToString(sum[:]))
		}
		if err := unpackTarGz(archive, dir); err != nil {
			return err
		}
		return os.Remove(archive)
	})
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(home, "axe.min.js"))
	return string(text), err
}

// Violations runs axe-core over the page as it is shown just now, and says in a
// line each what it found: by default all rules of WCAG 2.0 to 2.2, A and AA,
// and axe's own best practices.
func (b *Browser) Violations(axe string) (found []string, err error) {
	if err := b.Eval(axe+"\n;true", new(bool)); err != nil {
		return nil, fmt.Errorf("axe-core does not run: %w", err)
	}
	err = b.Eval(`axe.run(document).then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.failureSummary.replace(/\s+/g, " ") + " " + n.html.slice(0, 200))))`, &found)
	return found, err
}
