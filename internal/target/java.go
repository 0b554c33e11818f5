package target

import (
	"net/netip"
	"path"
	"strings"
)

// jvmOptions are the options a JVM runs with and what it was told to run.
type jvmOptions struct {
	// flags are the -X…, -XX:…, -D… and -javaagent… options, in order.
	flags []string
	// props are the system properties of the command line.
	props map[string]string
	// main is the main class, or the jar's name for -jar; args come after it.
	main string
	jar  bool
	args []string
	// classpath as given.
	classpath string
	argfile   bool // an @argfile hides more
}

// withValue are the launcher's options whose value is the next argument.
var withValue = map[string]bool{
	"-cp": true, "-classpath": true, "--class-path": true, "-p": true, "--module-path": true,
	"--upgrade-module-path": true, "--add-modules": true, "--add-exports": true, "--add-opens": true,
	"--add-reads": true, "--limit-modules": true, "--patch-module": true, "--enable-native-access": true,
	"-m": true, "--module": true, "--source": true,
}

// jsvcWithValue are those of Apache's jsvc, which starts Tomcat as a daemon.
var jsvcWithValue = map[string]bool{
	"-jvm": true, "-home": true, "-java-home": true, "-user": true, "-outfile": true, "-errfile": true,
	"-pidfile": true, "-wait": true, "-procname": true, "-cwd": true, "-umask": true,
}

// parseCommand reads the arguments of a java launcher, args[0] being the
// program. jsvc and other launchers of their own look alike enough: an option
// they alone have is taken for a flag and does no harm.
func parseCommand(args []string) jvmOptions {
	o := jvmOptions{props: map[string]string{}}
	if len(args) == 0 {
		return o
	}
	jsvc := strings.Contains(path.Base(args[0]), "jsvc")
	for i := 1; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "-jar":
			o.jar = true
		case a == "-m" || a == "--module":
			if i+1 < len(args) {
				o.setModule(args[i+1])
				o.args = args[i+2:]
			}
			return o
		case strings.HasPrefix(a, "--module="):
			o.setModule(a[len("--module="):])
			o.args = args[i+1:]
			return o
		case jsvc && jsvcWithValue[a]:
			i++
		case withValue[a]:
			if i+1 < len(args) {
				if i++; a == "-cp" || a == "-classpath" || a == "--class-path" {
					o.classpath = args[i]
				}
			}
		case strings.HasPrefix(a, "--class-path="):
			o.classpath = a[len("--class-path="):]
		case strings.HasPrefix(a, "@") && len(a) > 1:
			o.argfile = true
		case strings.HasPrefix(a, "-"):
			o.addFlag(a)
		default:
			o.main = a
			o.args = args[i+1:]
			return o
		}
	}
	return o
}

func (o *jvmOptions) setModule(m string) {
	if _, class, ok := strings.Cut(m, "/"); ok {
		m = class
	}
	o.main = m
}

func (o *jvmOptions) addFlag(a string) {
	o.flags = append(o.flags, a)
	if strings.HasPrefix(a, "-D") {
		k, v, _ := strings.Cut(a[2:], "=")
		if _, have := o.props[k]; !have || v != "" {
			o.props[k] = v // the last one wins, as in the JVM
		}
	}
}

// addVMArgs takes java.rt.vmArgs, the options as the JVM itself joined them with
// blanks. An option with a blank inside can't be told from two: what does not
// begin with a dash is taken to belong to the one before. They are complete
// where the command line is not, so they replace what it gave.
func (o *jvmOptions) addVMArgs(s string) {
	if s == "" {
		return
	}
	var joined []string
	for f := range strings.SplitSeq(s, " ") {
		if !strings.HasPrefix(f, "-") && len(joined) > 0 {
			joined[len(joined)-1] += " " + f
			continue
		}
		joined = append(joined, f)
	}
	o.flags, o.props = nil, map[string]string{}
	for _, f := range joined {
		if strings.HasPrefix(f, "-") {
			o.addFlag(f)
		}
	}
}

// addJavaCommand takes sun.rt.javaCommand: the main class or jar and its
// arguments, joined with blanks. It fills in what an @argfile hides.
func (o *jvmOptions) addJavaCommand(s string) {
	if s == "" || o.main != "" {
		return
	}
	f := strings.Split(s, " ")
	if o.main = f[0]; !strings.HasPrefix(f[0], "/") && !strings.HasSuffix(f[0], ".jar") {
		o.setModule(f[0]) // "jdk.jcmd/sun.tools.jps.Jps"
	}
	o.jar = o.jar || strings.HasSuffix(f[0], ".jar")
	o.args = f[1:]
}

// flag gives the value of the last option that begins with prefix.
func (o *jvmOptions) flag(prefix string) (string, bool) {
	for i := len(o.flags) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(o.flags[i], prefix); ok {
			return v, true
		}
	}
	return "", false
}

// has says whether a -XX:+Name or -XX:-Name was given last as on.
func (o *jvmOptions) has(name string) bool {
	for i := len(o.flags) - 1; i >= 0; i-- {
		switch o.flags[i] {
		case "-XX:+" + name:
			return true
		case "-XX:-" + name:
			return false
		}
	}
	return false
}

// mainName is the short form of the main class or jar, for a target's name.
func (o *jvmOptions) mainName() string {
	m := o.main
	if o.jar || strings.HasSuffix(m, ".jar") {
		return strings.TrimSuffix(path.Base(m), ".jar")
	}
	if i := strings.LastIndexByte(m, '.'); i >= 0 {
		m = m[i+1:]
	}
	return path.Base(m)
}

// tools are programs of the JDK that run for a moment beside a server and are
// none: jps, jstat, jcmd, javac.
var tools = []string{"sun.tools.", "jdk.jcmd/", "jdk.compiler/", "com.sun.tools.", "jdk.jartool/"}

// isTool looks at the module too, which the main class alone does not show.
func isTool(args []string, main string) bool {
	for _, t := range tools {
		if strings.HasPrefix(main, strings.ReplaceAll(t, "/", ".")) || strings.HasPrefix(main, t) {
			return true
		}
		for _, a := range args {
			if strings.HasPrefix(a, t) {
				return true
			}
		}
	}
	return false
}

// majorOf is 8 for "1.8.0_392" and 17 for "17.0.15", 0 when it can't be told.
func majorOf(version string) int {
	version = strings.TrimPrefix(version, "1.")
	n := 0
	for _, r := range version {
		if r < '0' || r > '9' || n > 1000 {
			break
		}
		n = n*10 + int(r-'0')
	}
	return n
}

func addrFrom(raw []byte) netip.Addr {
	a, _ := netip.AddrFromSlice(raw)
	return a.Unmap()
}
