package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Jetties are the versions that the tests try.
var Jetties = []string{"9.4.57.v20241219", "12.0.16"}

// Jetty says what kind of Jetty to start. The zero value is Jetty 9.4 with its
// default pool: 200 threads and an unbounded queue.
type Jetty struct {
	Version string // one of Jetties, or empty for the first
	// MinThreads, MaxThreads and MaxQueueSize bound the QueuedThreadPool. With
	// MaxQueueSize 0 the queue is unbounded, as it is by default, and nothing is
	// ever rejected.
	MinThreads, MaxThreads, MaxQueueSize int
	// RequestLog switches the request log on; Latency makes 9.4's log carry the
	// latency in milliseconds, Format is the pattern of 12's CustomRequestLog.
	RequestLog bool
	// TLS adds a connector with TLS, on Server.TLSAddr.
	TLS     bool
	Latency bool
	Format  string
	// Ini holds further lines of start.ini, say "--exec" and JVM options.
	Ini     []string
	JDK     JDK
	JVMArgs []string
	Env     []string
	Pipe    bool
}

// JettyHome is the unpacked distribution of a version.
func JettyHome(version string) (string, error) {
	artifact := "jetty-home"
	if strings.HasPrefix(version, "9.") {
		artifact = "jetty-distribution"
	}
	return once("jetty-"+version, "Eclipse Jetty "+version, "a real server to overload", func(ctx context.Context, dir string) error {
		archive, err := mavenCopy(ctx, "org.eclipse.jetty:"+artifact+":"+version+":tar.gz", dir)
		if err != nil {
			return err
		}
		defer os.Remove(archive)
		return unpackTarGz(archive, dir)
	})
}

// StartJetty starts a private Jetty for a test and stops it at the test's end.
func StartJetty(t T, o Jetty) *Server {
	t.Helper()
	if o.Version == "" {
		o.Version = Jetties[0]
	}
	home, err := JettyHome(o.Version)
	Need(t, err)
	if o.JDK.Home == "" {
		o.JDK, err = AnyJDK(o.java())
		Need(t, err)
	}
	Exclusive(t)
	s, err := o.start(home, t.TempDir())
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(s.Stop)
	t.Logf("Jetty %s on JDK %s, pid %d, %s", s.Version, s.JDK.Version, s.PID, s.Addr)
	return s
}

func (o Jetty) old() bool { return strings.HasPrefix(o.Version, "9.") }

func (o Jetty) java() int {
	if o.old() {
		return 8
	}
	return 17
}

func (o Jetty) start(home, base string) (*Server, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	s := &Server{
		Version: o.Version, JDK: o.JDK, Home: home, Base: base,
		Port: port, Addr: fmt.Sprintf("127.0.0.1:%d", port), LogDir: filepath.Join(base, "logs"),
	}
	if o.TLS {
		if s.TLSPort, err = FreePort(); err != nil {
			return nil, err
		}
		s.TLSAddr = fmt.Sprintf("127.0.0.1:%d", s.TLSPort)
	}
	if err := o.writeBase(s); err != nil {
		return nil, fmt.Errorf("base folder of Jetty %s: %w", o.Version, err)
	}
	if !o.Pipe {
		s.CatalinaOut = filepath.Join(s.LogDir, "jetty.out")
	}
	args := append([]string{"-Xmx256m"}, o.JVMArgs...)
	args = append(args, "-Djava.io.tmpdir="+filepath.Join(base, "temp"),
		"-Djetty.home="+home, "-Djetty.base="+base, "-jar", filepath.Join(home, "start.jar"))
	cmd := exec.Command(o.JDK.Tool("java"), args...)
	cmd.Dir = base
	cmd.Env = plainEnv(o.Env...)
	if err := s.launch("jetty "+o.Version, cmd); err != nil {
		return nil, err
	}
	return s, s.waitStarted(jettyStarted)
}

// jettyStarted is the last record of the start, in 9.4 ("Started @603ms") and
// in 10 to 12 ("Started oejs.Server@…").
var jettyStarted = regexp.MustCompile(`oejs\.Server:main: Started `)

// writeBase makes a jetty.base: start.ini, the pool where it is bounded, and
// the lab's web application as the root context.
func (o Jetty) writeBase(s *Server) error {
	for _, dir := range []string{"etc", "logs", "temp", "webapps"} {
		if err := os.MkdirAll(filepath.Join(s.Base, dir), 0o755); err != nil {
			return err
		}
	}
	deploy := "deploy"
	if !o.old() {
		deploy = "ee10-deploy"
	}
	ini := append([]string{"--module=http", "jetty.http.host=127.0.0.1", "jetty.http.port=" + strconv.Itoa(s.Port)}, o.Ini...)
	set := func(key string, n int) {
		if n > 0 {
			ini = append(ini, key+"="+strconv.Itoa(n))
		}
	}
	set("jetty.threadPool.minThreads", o.MinThreads)
	set("jetty.threadPool.maxThreads", o.MaxThreads)
	if o.RequestLog {
		ini = append(ini, "--module=requestlog", "jetty.requestlog.append=true")
		if o.Latency {
			ini = append(ini, "jetty.requestlog.loglatency=true")
		}
		if o.Format != "" {
			ini = append(ini, "jetty.requestlog.formatString="+o.Format)
		}
	}
	if o.TLS {
		ini = append(ini, "--module=https", "jetty.ssl.host=127.0.0.1", "jetty.ssl.port="+strconv.Itoa(s.TLSPort),
			"jetty.sslContext.keyStorePath=etc/"+keystore, "jetty.sslContext.keyStoreType=PKCS12", "jetty.sslContext.keyStorePassword="+keystorePassword,
			"jetty.sslContext.trustStorePath=etc/"+keystore, "jetty.sslContext.trustStoreType=PKCS12", "jetty.sslContext.trustStorePassword="+keystorePassword,
			"jetty.sslContext.keyManagerPassword="+keystorePassword)
		if err := writeKeys(filepath.Join(s.Base, "etc"), s.JDK); err != nil {
			return err
		}
	}
	// In 12 what follows a module of an environment (ee10) in the same file is a
	// property of that environment only: the port would stay 8080.
	ini = append(ini, "--module="+deploy)
	if err := os.WriteFile(filepath.Join(s.Base, "start.ini"), []byte(strings.Join(ini, "\n")+"\n"), 0o644); err != nil {
		return err
	}
	if o.MaxQueueSize > 0 {
		// A file of this name in the base stands in for the one in the home. The
		// queue can only be given to the constructor, so there is no property.
		xml := fmt.Sprintf(boundedPool, max(o.MaxThreads, 1), max(o.MinThreads, 1), o.MaxQueueSize)
		if err := os.WriteFile(filepath.Join(s.Base, "etc/jetty-threadpool.xml"), []byte(xml), 0o644); err != nil {
			return err
		}
	}
	api, _ := filepath.Glob(filepath.Join(s.Home, "lib", "*servlet-api-*.jar"))
	if len(api) == 0 {
		return fmt.Errorf("no servlet API jar below %s", s.Home)
	}
	// 12 has the API of each Jakarta EE version; any will do to compile against.
	return writeWebapp(filepath.Join(s.Base, "webapps/ROOT"), s.JDK, api[len(api)-1], !o.old())
}

const boundedPool = `<?xml version="1.0"?>
<!DOCTYPE Configure PUBLIC "-//Jetty//Configure//EN" "http://www.eclipse.org/jetty/configure_9_3.dtd">
<Configure>
  <New id="threadPool" class="org.eclipse.jetty.util.thread.QueuedThreadPool">
    <Arg type="int">%d</Arg>
    <Arg type="int">%d</Arg>
    <Arg type="int">60000</Arg>
    <Arg>
      <New class="org.eclipse.jetty.util.BlockingArrayQueue">
        <Arg type="int">%[3]d</Arg>
        <Arg type="int">1</Arg>
        <Arg type="int">%[3]d</Arg>
      </New>
    </Arg>
  </New>
</Configure>
`
