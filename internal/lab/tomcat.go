package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Tomcats are the versions that the tests try, oldest first. 8.5.32 is the one
// of the case this project exists for. All are served by Maven Central at the
// time of writing; docs/testing.md says what happens when one is not.
var Tomcats = []string{"7.0.109", "8.5.32", "8.5.100", "9.0.98", "10.1.34", "11.0.24"}

// DebianTomcat is Debian's own tomcat10, for machines where no version can be
// had through Maven.
const DebianTomcat = "debian"

// Tomcat says what kind of Tomcat to start. The zero value is the oldest
// Tomcat 8.5 with an NIO connector that has a pool of its own.
type Tomcat struct {
	Version string // one of Tomcats, DebianTomcat, or empty for 8.5.32 (else the nearest that can be had)
	// Protocol is nio (the default), nio2, bio (7.0 only) or apr (needs the
	// native library; up to 9.0).
	Protocol string
	// Executor is the shared pool, nil for a connector with its own.
	Executor *Executor
	// MaxThreads, AcceptCount and MaxConnections are attributes of the
	// connector, 0 for Tomcat's default.
	MaxThreads, AcceptCount, MaxConnections int
	// Connector holds further attributes, as they stand in server.xml.
	Connector string
	// Service holds further elements of the service, before its Connectors.
	Service string
	// AccessLogPattern is the valve's pattern, "common" when empty, and "-" for
	// no valve at all.
	AccessLogPattern string
	Buffered         bool   // the valve's buffer; off by default here, on in Tomcat
	Valve            string // further attributes of the access-log valve
	ValveClass       string // org.apache.catalina.valves.AccessLogValve when empty
	// Formatter is juli's: OneLineFormatter when empty, or the full class name
	// of another.
	Formatter string
	JDK       JDK      // the oldest that can run this version when empty
	JVMArgs   []string // after the lab's -Xmx256m
	Env       []string
	// Pipe leaves standard output a pipe to us, as a container runtime does,
	// instead of catalina.out.
	Pipe bool
	// User is the number of the user and group that the server runs as, 0 for
	// ours. Only root can have another. The base folder, which must be where that
	// user gets to, becomes his, and holds a copy of the distribution.
	User int
	// AnyAddress makes the connector listen without address=, on all of them.
	// The thread names then have no address in them.
	AnyAddress bool
	// TLS adds a second connector like the first, with TLS, on Server.TLSAddr.
	TLS bool
	// ShortPort takes ports of four digits, as most servers have: with five, the
	// kernel cuts the thread names so that Poller and Acceptor look alike.
	ShortPort bool
	// UID is like User for a server whose limits are to bind, as they don't root:
	// it need not be given a copy of all, since it keeps the right to read what only
	// root may. All other rights are gone.
	UID uint32
	// NoWait returns as soon as the JVM is started: Server.WaitStarted waits.
	NoWait bool
}

// Executor is Tomcat's shared thread pool; its threads are catalina-exec-N.
type Executor struct {
	MaxThreads, MinSpare, MaxQueueSize int
	Attributes                         string // further ones, as they stand in server.xml
}

// A Server is one running Tomcat or Jetty.
type Server struct {
	*Child
	Version     string // as asked for: "8.5.32"
	JDK         JDK
	Home, Base  string
	Port        int
	Addr        string // host:port
	TLSPort     int    // 0 where there is no TLS
	TLSAddr     string
	CatalinaOut string // Jetty: jetty.out; empty when standard output is a pipe
	LogDir      string
	out         *pipe
	uid         uint32
}

// URL is the address of a path on the server.
func (s *Server) URL(path string) string { return "http://" + s.Addr + path }

// Output is what the server has printed so far.
func (s *Server) Output() string {
	if s.out != nil {
		return s.out.String()
	}
	b, _ := os.ReadFile(s.CatalinaOut)
	return string(b)
}

// AccessLog is the text of all access-log files that are there now.
func (s *Server) AccessLog() string {
	var all strings.Builder
	found, _ := filepath.Glob(filepath.Join(s.LogDir, "localhost_access_log*"))
	jetty, _ := filepath.Glob(filepath.Join(s.LogDir, "*.request.log"))
	for _, f := range append(found, jetty...) {
		b, _ := os.ReadFile(f)
		all.Write(b)
	}
	return all.String()
}

// TomcatHome is the unpacked distribution of a version.
func TomcatHome(version string) (string, error) {
	why := "a real server to overload"
	if version == DebianTomcat {
		dir, err := debian("tomcat10", why)
		return filepath.Join(dir, "usr/share/tomcat10"), err
	}
	return once("tomcat-"+version, "Apache Tomcat "+version, why, func(ctx context.Context, dir string) error {
		archive, err := mavenCopy(ctx, "org.apache.tomcat:tomcat:"+version+":tar.gz", dir)
		if err != nil {
			return err
		}
		defer os.Remove(archive)
		return unpackTarGz(archive, dir)
	})
}

// AnyTomcat is the version to use where any will do, 8.5.32 first: it tries
// down the list until one can be had, Debian's last.
func AnyTomcat() (version, home string, err error) {
	var errs []error
	for _, v := range []string{"8.5.32", "8.5.100", "9.0.98", "10.1.34", DebianTomcat} {
		home, err := TomcatHome(v)
		if err == nil {
			return v, home, nil
		}
		errs = append(errs, err)
	}
	return "", "", errors.Join(errs...)
}

// StartTomcat starts a private Tomcat for a test and stops it at the test's
// end. It takes the machine's turn first. Where the server can't be had the
// test is skipped, or fails under CI.
func StartTomcat(t T, o Tomcat) *Server {
	t.Helper()
	home := ""
	var err error
	if o.Version == "" {
		o.Version, home, err = AnyTomcat()
	} else {
		home, err = TomcatHome(o.Version)
	}
	Need(t, err)
	if o.JDK.Home == "" {
		o.JDK, err = AnyJDK(tomcatJava(o.Version))
		Need(t, err)
	}
	Exclusive(t)
	s, err := o.start(home, t.TempDir())
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(s.Stop)
	t.Logf("Tomcat %s on JDK %s, pid %d, %s", s.Version, s.JDK.Version, s.PID, s.Addr)
	return s
}

// tomcatJava is the lowest Java a Tomcat version runs on.
func tomcatJava(version string) int {
	switch major, _, _ := strings.Cut(version, "."); major {
	case "10", DebianTomcat:
		return 11
	case "11":
		return 17
	}
	return 8
}

// StartTomcatIn starts a private Tomcat with its base folder in dir and waits
// until it serves.
func StartTomcatIn(dir string, o Tomcat) (*Server, error) {
	var home string
	var err error
	if o.Version == "" {
		o.Version, home, err = AnyTomcat()
	} else {
		home, err = TomcatHome(o.Version)
	}
	if err != nil {
		return nil, err
	}
	if o.JDK.Home == "" {
		if o.JDK, err = AnyJDK(tomcatJava(o.Version)); err != nil {
			return nil, err
		}
	}
	return o.start(home, dir)
}

func (o Tomcat) start(home, base string) (*Server, error) {
	free := FreePort
	if o.ShortPort {
		free = FreeShortPort
	}
	port, err := free()
	if err != nil {
		return nil, err
	}
	s := &Server{
		Version: o.Version, JDK: o.JDK, Home: home, Base: base, uid: o.UID,
		Port: port, Addr: fmt.Sprintf("127.0.0.1:%d", port), LogDir: filepath.Join(base, "logs"),
	}
	if o.TLS {
		if s.TLSPort, err = free(); err != nil {
			return nil, err
		}
		s.TLSAddr = fmt.Sprintf("127.0.0.1:%d", s.TLSPort)
	}
	if err := o.writeBase(s); err != nil {
		return nil, fmt.Errorf("base folder of Tomcat %s: %w", o.Version, err)
	}
	if o.UID != 0 && os.Getuid() == 0 {
		// The sidecar reads for a server only what that server's user may.
		if err := giveTo(int(o.UID), base); err != nil {
			return nil, err
		}
	}
	if o.User != 0 {
		if err := o.giveAway(s); err != nil {
			return nil, fmt.Errorf("make Tomcat %s another user's: %w", o.Version, err)
		}
	}
	if !o.Pipe {
		s.CatalinaOut = filepath.Join(s.LogDir, "catalina.out")
	}
	if err := o.launch(s); err != nil {
		return nil, err
	}
	if o.NoWait {
		return s, nil
	}
	return s, s.WaitStarted()
}

// WaitStarted waits until a Tomcat serves.
func (s *Server) WaitStarted() error { return s.waitStarted(tomcatStarted) }

// launch starts the JVM through the distribution's own script, whose `run` ends
// in exec, so that our child is the JVM with just the arguments that
// `catalina.sh start` gives it, and opens catalina.out to append as that does.
func (o Tomcat) launch(s *Server) error {
	env, command := o.command(s)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = s.Base
	cmd.Env = plainEnv(env...)
	if o.User != 0 {
		asUser(cmd, o.User)
	}
	cmd, err := readingAs(o.UID, cmd)
	if err != nil {
		return err
	}
	return s.launch("tomcat "+o.Version, cmd)
}

// command is how the server is started, and what it wants in its environment.
func (o Tomcat) command(s *Server) (env, command []string) {
	env = append([]string{
		"JAVA_HOME=" + s.JDK.Home, "CATALINA_HOME=" + s.Home, "CATALINA_BASE=" + s.Base,
		"CATALINA_TMPDIR=" + filepath.Join(s.Base, "temp"),
		"CATALINA_OPTS=" + strings.Join(append([]string{"-Xmx256m"}, o.JVMArgs...), " "),
	}, o.Env...)
	return env, []string{"/bin/sh", filepath.Join(s.Home, "bin/catalina.sh"), "run"}
}

// WriteTomcat makes all that a Tomcat needs below dir and does not start it: that
// is left to somebody else, a service manager, who is told how.
func WriteTomcat(dir string, port int, o Tomcat) (s *Server, env, command []string, err error) {
	home := ""
	if o.Version, home, err = AnyTomcat(); err != nil {
		return nil, nil, nil, err
	}
	if o.JDK, err = AnyJDK(tomcatJava(o.Version)); err != nil {
		return nil, nil, nil, err
	}
	s = &Server{Version: o.Version, JDK: o.JDK, Home: home, Base: dir, Port: port, Addr: fmt.Sprintf("127.0.0.1:%d", port), LogDir: filepath.Join(dir, "logs")}
	if err := o.writeBase(s); err != nil {
		return nil, nil, nil, err
	}
	if err := o.giveAway(s); err != nil {
		return nil, nil, nil, err
	}
	env, command = o.command(s)
	return s, env, command, nil
}

// giveAway copies the distribution into the base folder, since ours is in a cache
// that may be closed to others, and gives it all to the server's user.
func (o Tomcat) giveAway(s *Server) error {
	home := filepath.Join(s.Base, "home")
	if err := os.CopyFS(home, os.DirFS(s.Home)); err != nil {
		return err
	}
	s.Home = home
	if o.User == 0 {
		return nil
	}
	// We open it for him, and he is to own it.
	if err := os.WriteFile(filepath.Join(s.LogDir, "catalina.out"), nil, 0o640); err != nil {
		return err
	}
	return giveTo(o.User, s.Base)
}

// giveTo makes a tree another user's.
func giveTo(user int, tree string) error {
	return filepath.WalkDir(tree, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, user, user))
	})
}

// launch starts the server with its output where the options want it.
func (s *Server) launch(name string, cmd *exec.Cmd) (err error) {
	if s.CatalinaOut == "" {
		s.out = &pipe{}
		cmd.Stdout, cmd.Stderr = s.out, s.out
	} else {
		f, err := os.OpenFile(s.CatalinaOut, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
		if err != nil {
			return err
		}
		defer f.Close()
		cmd.Stdout, cmd.Stderr = f, f
	}
	s.Child, err = start(name, cmd)
	return err
}

// tomcatStarted is the record of the end of the start, in any of juli's
// formats and in any language: only class and method stay the same. Asking the
// server itself would put a request of ours into its access log.
var tomcatStarted = regexp.MustCompile(`org\.apache\.catalina\.startup\.Catalina.{1,20}\bstart\b`)

func (s *Server) waitStarted(sign *regexp.Regexp) error {
	ok := Until(2*time.Minute, func() bool {
		gone, _ := s.Exited()
		return gone || sign.MatchString(s.Output())
	})
	if gone, err := s.Exited(); gone {
		return fmt.Errorf("%s ended while starting: %v\n%s", s.Name, err, tail(s.Output()))
	}
	if !ok {
		s.Stop()
		return fmt.Errorf("%s did not start within two minutes:\n%s", s.Name, tail(s.Output()))
	}
	return nil
}

func tail(text string) string {
	if len(text) > 4000 {
		return "… " + text[len(text)-4000:]
	}
	return text
}

// pipe takes the output of a server whose standard output is a pipe.
type pipe struct {
	mu sync.Mutex
	b  bytes.Buffer
}

var _ io.Writer = (*pipe)(nil)

func (p *pipe) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.Write(b)
}

func (p *pipe) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.String()
}
