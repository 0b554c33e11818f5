package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// ABReport is what ab said. "Failed requests" is not taken: ab counts good
// answers of another length as failed and empty ones not at all.
type ABReport struct {
	Complete int // ab's "Complete requests": connections that came to any end
	// Connect, Receive, Length and Exceptions are the parts of "Failed requests".
	Connect, Receive, Length, Exceptions int
	Non2xx                               int
	Bytes                                int64 // "Total transferred"
	Body                                 int64 // "HTML transferred": bodies alone
	Seconds                              float64
	Text                                 string
}

// Answers is the number of complete answers, where each has a body of the given
// size. It is the one exact count that ab's report allows.
func (r ABReport) Answers(size int) int { return int(r.Body) / size }

// AB loads url with n requests over c connections and gives up on one after
// the timeout. It goes on after a broken connection (-r), and takes answers of
// any length (-l).
func AB(url string, n, c int, timeout time.Duration) (ABReport, error) {
	path, env, err := tool("ab")
	if err != nil {
		return ABReport{}, err
	}
	cmd := exec.Command(path, "-r", "-l", "-q", "-s", strconv.Itoa(int(max(timeout.Seconds(), 1))),
		"-n", strconv.Itoa(n), "-c", strconv.Itoa(c), url)
	cmd.Env = env
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	out, err := run(ctx, cmd)
	if err != nil {
		return ABReport{Text: out}, err
	}
	return parseAB(out), nil
}

var (
	abNumber = regexp.MustCompile(`(?m)^(Complete requests|Non-2xx responses|Total transferred|HTML transferred|Time taken for tests):\s+([0-9.]+)`)
	abFailed = regexp.MustCompile(`\(Connect: (\d+), Receive: (\d+), Length: (\d+), Exceptions: (\d+)\)`)
)

func parseAB(out string) ABReport {
	r := ABReport{Text: out}
	for _, m := range abNumber.FindAllStringSubmatch(out, -1) {
		n, _ := strconv.ParseFloat(m[2], 64)
		switch m[1] {
		case "Complete requests":
			r.Complete = int(n)
		case "Non-2xx responses":
			r.Non2xx = int(n)
		case "Total transferred":
			r.Bytes = int64(n)
		case "HTML transferred":
			r.Body = int64(n)
		case "Time taken for tests":
			r.Seconds = n
		}
	}
	if m := abFailed.FindStringSubmatch(out); m != nil {
		for i, to := range []*int{&r.Connect, &r.Receive, &r.Length, &r.Exceptions} {
			*to, _ = strconv.Atoi(m[i+1])
		}
	}
	return r
}

// WrkReport is what wrk said; its lines for errors are there only when not 0.
type WrkReport struct {
	Requests                      int
	Connect, Read, Write, Timeout int
	Non2xx                        int
	PerSecond                     float64
	Text                          string
}

// Wrk loads url over c connections for a time.
func Wrk(url string, c int, d time.Duration) (WrkReport, error) {
	path, env, err := tool("wrk")
	if err != nil {
		return WrkReport{}, err
	}
	cmd := exec.Command(path, "-t1", "-c", strconv.Itoa(c), "-d", fmt.Sprintf("%ds", int(max(d.Seconds(), 1))), url)
	cmd.Env = env
	ctx, cancel := context.WithTimeout(context.Background(), d+time.Minute)
	defer cancel()
	out, err := run(ctx, cmd)
	if err != nil {
		return WrkReport{Text: out}, err
	}
	return parseWrk(out), nil
}

// StartWrk is Wrk as a child that can be ended before its time, with what it
// prints in output.
func StartWrk(output, url string, c int, d time.Duration) (*Child, error) {
	path, env, err := tool("wrk")
	if err != nil {
		return nil, err
	}
	return startDaemon("wrk", output, env, path, "-t1", "-c", strconv.Itoa(c), "-d", fmt.Sprintf("%ds", int(max(d.Seconds(), 1))), url)
}

var (
	wrkRequests = regexp.MustCompile(`(?m)^\s*(\d+) requests in `)
	wrkErrors   = regexp.MustCompile(`Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)`)
	wrkNon2xx   = regexp.MustCompile(`Non-2xx or 3xx responses: (\d+)`)
	wrkRate     = regexp.MustCompile(`Requests/sec:\s+([0-9.]+)`)
)

func parseWrk(out string) WrkReport {
	r := WrkReport{Text: out}
	if m := wrkRequests.FindStringSubmatch(out); m != nil {
		r.Requests, _ = strconv.Atoi(m[1])
	}
	if m := wrkErrors.FindStringSubmatch(out); m != nil {
		for i, to := range []*int{&r.Connect, &r.Read, &r.Write, &r.Timeout} {
			*to, _ = strconv.Atoi(m[i+1])
		}
	}
	if m := wrkNon2xx.FindStringSubmatch(out); m != nil {
		r.Non2xx, _ = strconv.Atoi(m[1])
	}
	if m := wrkRate.FindStringSubmatch(out); m != nil {
		r.PerSecond, _ = strconv.ParseFloat(m[1], 64)
	}
	return r
}

// JStack is a thread dump of a JVM of the lab, taken by the JDK's own tool: the
// independent count that the sidecar's is held against.
func (s *Server) JStack() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return run(ctx, exec.Command(s.JDK.Tool("jstack"), strconv.Itoa(s.PID)))
}

// ThreadsNamed is what `jstack PID | grep -c '^"PREFIX'` prints.
func (s *Server) ThreadsNamed(prefix string) (int, error) {
	dump, err := s.JStack()
	if err != nil {
		return 0, err
	}
	return CountLines(dump, `^"`+regexp.QuoteMeta(prefix)), nil
}

// CountLines is `grep -cE PATTERN`.
func CountLines(text, pattern string) (n int) {
	re := regexp.MustCompile(pattern)
	for line := range strings.Lines(text) {
		if re.MatchString(line) {
			n++
		}
	}
	return n
}

// GrepCount runs the real grep -cE on a file.
func GrepCount(pattern, file string) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := run(ctx, exec.Command("grep", "-cE", "--", pattern, file))
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 { // none found is no error
		err = nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(out))
}

// DU is what the real `du -s --block-size=1` says of a folder.
func DU(dir string) (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := run(ctx, exec.Command("du", "-s", "--block-size=1", dir))
	if err != nil {
		return 0, err
	}
	size, _, _ := strings.Cut(out, "\t")
	return strconv.ParseInt(size, 10, 64)
}

// Build compiles one of the module's programs into dir and returns its path.
func Build(dir, pkg string) (string, error) {
	root, err := ModuleRoot()
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, filepath.Base(pkg))
	cmd := exec.Command("go", "build", "-o", program, pkg)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as it is shipped
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if _, err := run(ctx, cmd); err != nil {
		return "", fmt.Errorf("build %s: %w", pkg, err)
	}
	return program, nil
}

// ModuleRoot is the checkout that the working folder is in.
func ModuleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if isFile(filepath.Join(dir, "go.mod")) {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod above the working folder")
		}
		dir = up
	}
}

const emulator = "qemu-aarch64-static"

// Emulator runs programs of arm64, whatever this machine is: the program is its
// first argument.
func Emulator() (path string, env []string, err error) { return tool(emulator) }
