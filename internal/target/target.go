// Package target finds the JVM servers of a machine and all that can be learnt
// about them from beside: pid and start time, kind and version, settings,
// ports, pools and log files.
package target

import (
	"path"
	"regexp"
	"time"
)

// Kind is what a target is.
type Kind string

const (
	Tomcat Kind = "tomcat"
	Jetty  Kind = "jetty"
	JVM    Kind = "jvm"
)

// A Target is one server. It is not changed once Scan has returned it.
type Target struct {
	// Name is kind and lowest serving port ("tomcat-8080"), for other JVMs the
	// main class or jar. It stays the same across restarts.
	Name    string  `json:"name" yaml:"name"`
	Kind    Kind    `json:"kind" yaml:"kind"`
	Version string  `json:"version,omitempty" yaml:"version,omitempty"` // the server's, "8.5.32"; empty when unknown
	JDK     JDK     `json:"jdk" yaml:"jdk"`
	Process Process `json:"process" yaml:"process"`
	// Home and Base are catalina.home and catalina.base, or jetty.home and
	// jetty.base, as the server sees them.
	Home string `json:"home,omitempty" yaml:"home,omitempty"`
	Base string `json:"base,omitempty" yaml:"base,omitempty"`

	Connectors []Connector `json:"connectors,omitempty" yaml:"connectors,omitempty"`
	Executors  []Executor  `json:"executors,omitempty" yaml:"executors,omitempty"`
	AccessLogs []AccessLog `json:"access_logs,omitempty" yaml:"access_logs,omitempty"`
	AppLogs    []AppLog    `json:"app_logs,omitempty" yaml:"app_logs,omitempty"`
	GCLogs     []GCLog     `json:"gc_logs,omitempty" yaml:"gc_logs,omitempty"`
	PerfData   PerfData    `json:"perf_data" yaml:"perf_data"`
	// HeapDump is where the JVM writes its heap on an OutOfMemoryError: a file, or
	// a folder. Empty when it does not.
	HeapDump string `json:"heap_dump,omitempty" yaml:"heap_dump,omitempty"`

	// Learned says for the reader how each fact was found.
	Learned []Fact `json:"learned,omitempty" yaml:"learned,omitempty"`
	// Blind lists what can't be seen, why, and which right would mend it.
	Blind []Blind `json:"blind,omitempty" yaml:"blind,omitempty"`
	// Findings are settings that will hurt under load.
	Findings []Finding `json:"findings,omitempty" yaml:"findings,omitempty"`

	// access is how its files are opened; nil for one that was made by hand.
	// named says that the name is from the settings.
	named  bool
	access *access
}

// Process is the JVM as the kernel knows it. PID and StartTicks together are
// its identity: a pid alone is used again.
type Process struct {
	PID        int       `json:"pid" yaml:"pid"`
	NSPID      int       `json:"ns_pid" yaml:"ns_pid"`           // its pid in its own namespace, which names hsperfdata and the attach socket
	StartTicks uint64    `json:"start_ticks" yaml:"start_ticks"` // field 22 of /proc/PID/stat
	Started    time.Time `json:"started" yaml:"started"`
	UID        int       `json:"uid" yaml:"uid"`
	// Root is the folder beneath which the process' paths are to be opened:
	// "/" in our own mount namespace, else /proc/PID/root.
	Root string `json:"root" yaml:"root"`
	Cwd  string `json:"cwd" yaml:"cwd"`
	// Args are the JVM's options and the command, with secrets masked.
	Args      []string `json:"args,omitempty" yaml:"args,omitempty"`
	MainClass string   `json:"main_class,omitempty" yaml:"main_class,omitempty"`
}

// JDK is the Java that runs the target.
type JDK struct {
	Version string `json:"version,omitempty" yaml:"version,omitempty"` // "17.0.15", "1.8.0_392"
	Major   int    `json:"major,omitempty" yaml:"major,omitempty"`     // 8, 17, 25; 0 when unknown
	Vendor  string `json:"vendor,omitempty" yaml:"vendor,omitempty"`
	VM      string `json:"vm,omitempty" yaml:"vm,omitempty"` // "OpenJDK 64-Bit Server VM"
}

// Connector is one listening endpoint of a server. A figure of 0 is not set in
// the server's files; Defaults of the version are filled in by the reader of
// them, and -1 is what Tomcat itself uses for "no limit".
type Connector struct {
	Port           int    `json:"port" yaml:"port"`                                               // the one it listens on
	Address        string `json:"address,omitempty" yaml:"address,omitempty"`                     // the one it is bound to; empty is all
	Protocol       string `json:"protocol" yaml:"protocol"`                                       // bio, nio, nio2, apr, ajp-nio …, jetty
	TLS            bool   `json:"tls,omitempty" yaml:"tls,omitempty"`                             // it speaks TLS
	Executor       string `json:"executor,omitempty" yaml:"executor,omitempty"`                   // name of the shared pool, empty for one of its own
	MaxThreads     int    `json:"max_threads,omitempty" yaml:"max_threads,omitempty"`             // of its own pool
	MinSpare       int    `json:"min_spare_threads,omitempty" yaml:"min_spare_threads,omitempty"` // of its own pool
	AcceptCount    int    `json:"accept_count,omitempty" yaml:"accept_count,omitempty"`           // length of the accept queue asked for
	MaxConnections int    `json:"max_connections,omitempty" yaml:"max_connections,omitempty"`     // at once, before it stops accepting
	// ConnectionTimeout and KeepAliveTimeout are in milliseconds, as configured.
	ConnectionTimeout int `json:"connection_timeout_ms,omitempty" yaml:"connection_timeout_ms,omitempty"`
	KeepAliveTimeout  int `json:"keep_alive_timeout_ms,omitempty" yaml:"keep_alive_timeout_ms,omitempty"`
	// MaxQueueSize is the connector's own (Tomcat 9.0.90, 10.1.25, 11), 0 when not set.
	MaxQueueSize int `json:"max_queue_size,omitempty" yaml:"max_queue_size,omitempty"`
	// ThreadPrefix is what the names of its own pool's threads begin with
	// ("http-nio-8080-exec-"), empty with a shared Executor.
	ThreadPrefix string `json:"thread_prefix,omitempty" yaml:"thread_prefix,omitempty"`
	Listening    bool   `json:"listening" yaml:"listening"` // a socket of this process listens there now
}

// Executor is a shared thread pool.
type Executor struct {
	Name         string `json:"name" yaml:"name"`                                               // by which connectors name it
	NamePrefix   string `json:"name_prefix" yaml:"name_prefix"`                                 // with its trailing dash
	MaxThreads   int    `json:"max_threads" yaml:"max_threads"`                                 // its ceiling
	MinSpare     int    `json:"min_spare_threads,omitempty" yaml:"min_spare_threads,omitempty"` // kept although idle
	MaxQueueSize int    `json:"max_queue_size" yaml:"max_queue_size"`                           // 2147483647 when not bounded
	Virtual      bool   `json:"virtual,omitempty" yaml:"virtual,omitempty"`                     // it runs virtual threads
}

// LogFile names one log as a stream: a fixed name, or a folder and what the
// names in it look like.
type LogFile struct {
	// Name is the label: the file's name with date and number taken out.
	Name string `json:"name" yaml:"name"`
	// Path is the live file as the target names it; empty when the date is in
	// the live name.
	Path string `json:"path,omitempty" yaml:"path,omitempty"`
	// Dir is the folder, in both cases, and Match a regular expression on the base
	// name where Path is empty.
	Dir   string `json:"dir,omitempty" yaml:"dir,omitempty"`
	Match string `json:"match,omitempty" yaml:"match,omitempty"`
}

// Folder is the folder the log lies in.
func (f LogFile) Folder() string {
	if f.Path != "" {
		return path.Dir(f.Path)
	}
	return f.Dir
}

// Pattern is Match compiled, or nil.
func (f LogFile) Pattern() (*regexp.Regexp, error) {
	if f.Match == "" {
		return nil, nil
	}
	return regexp.Compile(f.Match)
}

// AccessLog is one access-log valve or request log.
type AccessLog struct {
	LogFile `yaml:",inline"`
	// Format is tomcat, w3c, json, jetty (CustomRequestLog) or jetty-ncsa.
	Format  string `json:"format" yaml:"format"`
	Pattern string `json:"pattern" yaml:"pattern"` // as the server's settings have it
	// Scope is engine, host:NAME or context:PATH. Requests are counted from the
	// widest scope that covers them, once.
	Scope     string `json:"scope" yaml:"scope"`
	Buffered  bool   `json:"buffered" yaml:"buffered"`   // its lines come in lumps
	Rotatable bool   `json:"rotatable" yaml:"rotatable"` // it begins a new file each day
	// MaxDays is how long the files are kept; 0 is for ever.
	MaxDays    int    `json:"max_days,omitempty" yaml:"max_days,omitempty"`
	Counted    bool   `json:"counted" yaml:"counted"`                           // false where another valve logs the same requests
	Conditions string `json:"conditions,omitempty" yaml:"conditions,omitempty"` // under which requests are left out
}

// AppLog is one application log.
type AppLog struct {
	LogFile `yaml:",inline"`
	// Role is primary for the one complete log (catalina.out), copy for one that
	// carries the same records again (catalina.DATE.log beside catalina.out),
	// and own for one with records of its own (localhost.DATE.log).
	Role string `json:"role" yaml:"role"`
	// Incomplete says that stdout could not be had and that raw lines may be
	// missing from this log.
	Incomplete bool `json:"incomplete,omitempty" yaml:"incomplete,omitempty"`
}

// GCLog is one GC log.
type GCLog struct {
	LogFile `yaml:",inline"`
	// Unified is the logging of JDK 9 and later.
	Unified bool   `json:"unified" yaml:"unified"`
	Options string `json:"options,omitempty" yaml:"options,omitempty"` // the flag it was learnt from
}

// PerfData is the hsperfdata file.
type PerfData struct {
	Path string `json:"path,omitempty" yaml:"path,omitempty"` // as we open it
	// Reason says why there is none, when Path is empty.
	Reason string `json:"reason,omitempty" yaml:"reason,omitempty"`
}

// Fact is one thing learnt and how.
type Fact struct {
	// Key is the key of the settings file that the fact is about: base, version,
	// connectors, gc_logs, and args, jdk and ports for what is no setting.
	Key  string `json:"key" yaml:"key"`
	What string `json:"what" yaml:"what"`
	From string `json:"from" yaml:"from"`
}

// Blind is something that can't be seen.
type Blind struct {
	Source string `json:"source" yaml:"source"` // the room: process, jvm, gclog, …
	Reason string `json:"reason" yaml:"reason"` // a short constant: no_permission, no_perfdata, stdout_is_pipe
	Detail string `json:"detail" yaml:"detail"` // a sentence
	Needs  string `json:"needs,omitempty" yaml:"needs,omitempty"`
}

// Finding is a setting that will hurt, with its reason.
type Finding struct {
	ID     string `json:"id" yaml:"id"` // access_log_without_duration
	Detail string `json:"detail" yaml:"detail"`
}
