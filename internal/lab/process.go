package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Child is a program that the lab started. It is only ever stopped by the
// handle we got when we started it, never by a name.
type Child struct {
	Name string
	PID  int
	cmd  *exec.Cmd
	done chan struct{}
	err  error
	once sync.Once
}

// start runs a program as a child that dies with us.
func start(name string, cmd *exec.Cmd) (*Child, error) {
	dieWithParent(cmd)
	// A killed child's grandchildren may hold its pipes; don't wait for them.
	cmd.WaitDelay = 2 * time.Second
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	c := &Child{Name: name, PID: cmd.Process.Pid, cmd: cmd, done: make(chan struct{})}
	go func() {
		c.err = cmd.Wait()
		close(c.done)
	}()
	return c, nil
}

// StartProgram runs a program of the caller's (the sidecar itself, in the
// end-to-end test and the demo) with its output in one file.
func StartProgram(name, output string, program string, args ...string) (*Child, error) {
	f, err := os.OpenFile(output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = f, f
	return start(name, cmd)
}

// StartCommand runs a command of the caller's, who has set its output and whose
// rights it has.
func StartCommand(name string, cmd *exec.Cmd) (*Child, error) { return start(name, cmd) }

// Exited says whether the child has ended, and how.
func (c *Child) Exited() (bool, error) {
	select {
	case <-c.done:
		return true, c.err
	default:
		return false, nil
	}
}

// Stop asks the child to end (SIGTERM), and kills it when it has not after ten
// seconds. It may be called more than once.
func (c *Child) Stop() {
	c.once.Do(func() {
		c.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-c.done:
			return
		case <-time.After(10 * time.Second):
		}
		c.cmd.Process.Kill()
		<-c.done
	})
}

// Kill ends the child at once, as the OOM killer would.
func (c *Child) Kill() {
	c.once.Do(func() {
		c.cmd.Process.Kill()
		<-c.done
	})
}

// run runs a short program to its end and returns its standard output. The
// error carries what the program said.
func run(ctx context.Context, cmd *exec.Cmd) (string, error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	dieWithParent(cmd)
	cmd.WaitDelay = 2 * time.Second
	if err := cmd.Start(); err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	defer stop()
	if err := cmd.Wait(); err != nil {
		said := strings.TrimSpace(errs.String() + "\n" + out.String())
		if len(said) > 2000 {
			said = said[:2000] + " …"
		}
		return out.String(), fmt.Errorf("%s: %w: %s", cmd.Args[0], errors.Join(err, ctx.Err()), said)
	}
	return out.String(), nil
}

// StartProgramAs is StartProgram as another user: who is to see all of a server
// that runs as one has to be that user too.
func StartProgramAs(uid uint32, name, output string, program string, args ...string) (*Child, error) {
	cmd, err := readingAs(uid, exec.Command(program, args...))
	if err != nil {
		return nil, err
	}
	return StartProgram(name, output, cmd.Path, cmd.Args[1:]...)
}

// readingAs is the same program run by another user. Of root's rights it keeps the
// one to read any file. (A change of user ends the order to die with us; setpriv
// gives it anew.)
func readingAs(uid uint32, cmd *exec.Cmd) (*exec.Cmd, error) {
	if uid == 0 || os.Getuid() != 0 {
		return cmd, nil
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		return nil, Missing{fmt.Errorf("a server of another user: %w", err)}
	}
	id := strconv.Itoa(int(uid))
	as := exec.Command(setpriv, append([]string{"--reuid", id, "--regid", id, "--clear-groups",
		"--securebits", "+no_setuid_fixup", "--inh-caps", "+dac_override", "--ambient-caps", "+dac_override", "--pdeathsig", "KILL"}, cmd.Args...)...)
	as.Dir, as.Env = cmd.Dir, cmd.Env
	return as, nil
}

// Limit sets a limit of the running server's, as ulimit would have before its
// start: resource is an option of prlimit: "nproc", "nofile", or "as" in bytes.
func (s *Server) Limit(resource string, n int) error {
	prlimit, err := exec.LookPath("prlimit")
	if err != nil {
		return Missing{fmt.Errorf("a limit for a running server: %w", err)}
	}
	// Whoever is the same user may lower a limit; in a container not even root may
	// lower another's.
	cmd, err := readingAs(s.uid, exec.Command(prlimit, "--pid", strconv.Itoa(s.PID), fmt.Sprintf("--%s=%d:%[2]d", resource, n)))
	if err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// FreePort is a port of the loopback address that nobody listens on now.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// FreeShortPort is a free port of four digits.
func FreeShortPort() (int, error) {
	for range 100 {
		port := 2000 + rand.IntN(8000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			l.Close()
			return port, nil
		}
	}
	return 0, errors.New("no free port of four digits was found in a hundred tries")
}

// plainEnv is our environment without what would leak into a server: options
// and folders of another Tomcat, Jetty or JVM.
func plainEnv(more ...string) []string {
	var env []string
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		switch {
		case strings.HasPrefix(name, "CATALINA_"), strings.HasPrefix(name, "JETTY_"), strings.HasPrefix(name, "JAVA_"),
			strings.HasPrefix(name, "JDK_"), strings.HasPrefix(name, "JRE_"), name == "_JAVA_OPTIONS", name == "CLASSPATH":
		default:
			env = append(env, e)
		}
	}
	return append(env, more...)
}
