package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// dependencyPlugin is the Maven plugin that copies one artefact. The version is
// named because Maven else asks the registry for the newest each time.
const dependencyPlugin = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"

// mavenCopy fetches one artefact (group:artifact:version:type) into dir and
// returns its path. The artefacts Maven itself keeps go below our cache too.
func mavenCopy(ctx context.Context, artifact, dir string) (string, error) {
	mvn, env, err := maven()
	if err != nil {
		return "", err
	}
	// Maven's own store is not made for two at once.
	unlock, err := cacheLock("maven-store")
	if err != nil {
		return "", err
	}
	defer unlock()
	repo := filepath.Join(Cache(), "m2")
	cmd := exec.Command(mvn, "-B", "-q", "-Dmaven.repo.local="+repo, dependencyPlugin+":copy",
		"-Dartifact="+artifact, "-DoutputDirectory="+dir)
	cmd.Dir = dir // no pom.xml, no .mvn of somebody else
	cmd.Env = env
	if out, err := run(ctx, cmd); err != nil {
		return "", fmt.Errorf("maven %s: %w: %s", artifact, err, firstError(out))
	}
	parts := strings.Split(artifact, ":")
	// The copy in Maven's own store is the same bytes again.
	os.RemoveAll(filepath.Join(repo, strings.ReplaceAll(parts[0], ".", "/"), parts[1], parts[2]))
	path := filepath.Join(dir, parts[1]+"-"+parts[2]+"."+parts[3])
	if !isFile(path) {
		return "", fmt.Errorf("maven said it copied %s, but %s is not there", artifact, path)
	}
	return path, nil
}

func firstError(out string) string {
	for line := range strings.Lines(out) {
		if strings.Contains(line, "ERROR") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// maven finds Maven: the machine's, or Debian's package unpacked in the cache.
func maven() (mvn string, env []string, err error) {
	if path, err := exec.LookPath("mvn"); err == nil {
		return path, os.Environ(), nil
	}
	jdk, err := AnyJDK(8)
	if err != nil {
		return "", nil, err
	}
	dir, err := debian("maven", "Maven, to get the servers with")
	if err != nil {
		return "", nil, fmt.Errorf("no mvn on the PATH, and %w", err)
	}
	home := filepath.Join(dir, "usr/share/maven")
	return filepath.Join(home, "bin/mvn"), append(plainEnv(), "MAVEN_HOME="+home, "JAVA_HOME="+jdk.Home), nil
}
