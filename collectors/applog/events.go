package applog

//go:generate go test . -run TestDocs -update

// An Event is one way in which a server says that it is in trouble.
//
// What is matched is class, method and exception class, which are the same in
// every language. English text is asked for only where it is not localised (the
// JDK's and Jetty's is not), or as a second way beside one by class.
type Event struct {
	// Name is the value of the label event.
	Name string
	// Versions are the servers whose text was verified, and how: [run] seen
	// running, [src] read in the server's sources, [old] in stored older sources,
	// [text] in public code and bug reports that quote it.
	Versions string
	// Meaning says what happened, Next what to look at.
	Meaning, Next string
	// Labels are the labels it fills beside event: "port" where the thread or
	// the socket in the text tells it.
	Labels []string

	rules []rule
}

// A rule is one form of an event. All of its conditions that are set must hold;
// of the words in one condition any one does.
type rule struct {
	class  []string // the last part of the logger's class: AbstractEndpoint
	not    []string // classes that it is not: they tell again what another record tells
	pkg    string   // with it the class must be in this package (abbreviated packages pass)
	method []string // where the layout prints methods
	// min is the lowest level; 0 means Warning.
	min Level
	// text is what the message begins with, has what it has in it. Both are held
	// against the fingerprint, in which quoted and bracketed values are taken
	// out: words that another record quotes decide nothing.
	text, has []string
	thrown    []string // the exception's class, in full
	excText   []string // in the exception's line behind the class
	frame     []string // in the first frame
	// uncaught is for "Exception in thread …" lines, thread for a part of the
	// thread's name there and in records.
	uncaught bool
	thread   []string
	// raw is what a line that belongs to no record begins with or (rawHas) has in it.
	raw, rawHas []string
	noException bool // the trace with it is a picture, no failure
}

const (
	rejected = "java.util.concurrent.RejectedExecutionException"
	oom      = "java.lang.OutOfMemoryError"
	netPkg   = "org.apache.tomcat.util.net."
)

var port = []string{"port"}

// endpoints are the loggers of the same records where a bridge (slf4j, log4j)
// prints the logger's name instead of the calling class.
var endpoints = []string{"AbstractEndpoint", "NioEndpoint", "Nio2Endpoint", "AprEndpoint", "JIoEndpoint", "SocketWrapperBase",
	"Http11NioProtocol", "Http11Nio2Protocol", "Http11AprProtocol", "Http11Protocol"}

// Events are the built-in events, in the order of the docs.
var Events = []Event{
	{
		Name:     "executor_rejected",
		Versions: "Tomcat 7.0.109 BIO and NIO, 8.5.32 NIO and NIO2 (old line form), 9.0.98, 10.1.34 and 11.0.24 NIO [run]; 9.0.70 APR, 10.1.60 NIO and NIO2 [run]; 7.0 APR [src]; Jetty 9.4.57 and 12.0.16 [run], 10 and 11 [src]",
		Meaning:  "The thread pool was full and its queue too, so the server closed the connection without an answer. One for each connection turned away; it is in no access log.",
		Next:     "Busy threads of the pool (jvm_threadpool_threads), latency of what they serve, maxThreads and maxQueueSize; each rejection costs about 1 KB of log, so look at the disk too.",
		Labels:   port,
		rules: []rule{
			{pkg: netPkg, text: []string{"Executor rejected socket ", "Socket processing request was rejected for", "Socket reprocessing request was rejected for"}},
			{pkg: netPkg, thrown: []string{rejected}},
			{class: endpoints, thrown: []string{rejected}},
			{class: []string{"QueuedThreadPool", "ExecutorThreadPool"}, has: []string{" rejected "}},
		},
	},
	{
		Name:     "threads_exhausted",
		Versions: "Tomcat 5.5 and 6.0 [old]",
		Meaning:  "Every thread of the connector is taken; further connections wait in the accept queue.",
		Next:     "What the threads wait for (a thread dump), then maxThreads.",
		Labels:   port,
		rules: []rule{
			{class: []string{"ThreadPool"}, method: []string{"logFull"}, min: Info},
			{text: []string{"All threads ("}, has: []string{"are currently busy, waiting"}, min: Info},
			{pkg: netPkg, text: []string{"Maximum number of threads ("}, min: Info},
		},
	},
	{
		Name:     "too_many_open_files",
		Versions: "Tomcat 10.1.60, Jetty 9.4.57 [run]",
		Meaning:  "The process is at its limit of descriptors: no connection can be accepted, and files can't be opened.",
		Next:     "process_open_fds against process_max_fds; what they are (sockets, files); LimitNOFILE.",
		Labels:   port,
		rules: []rule{
			{thrown: []string{"java.io.IOException", "java.net.SocketException", "java.io.FileNotFoundException", "java.nio.file.FileSystemException"}, excText: []string{"Too many open files"}},
		},
	},
	{
		Name: "out_of_memory_heap", Versions: "JDK 17.0.15 and 25.0.3, Tomcat 10.1.60 [run]",
		Meaning: "An allocation failed: the heap is full of what is still reachable, or the collector made no headway.",
		Next:    "jvm_memory_pool_collection_used_bytes of the old generation, then a heap dump.",
		rules:   oomRules("Java heap space", "GC overhead limit exceeded"),
	},
	{
		Name: "out_of_memory_metaspace", Versions: "JDK 17.0.15 and 25.0.3 [run]; PermGen of JDK 7 [text]",
		Meaning: "No room for another class (PermGen until JDK 7).",
		Next:    "jvm_classes_currently_loaded: redeployments that leak a class loader; MaxMetaspaceSize.",
		rules:   oomRules("Metaspace", "Compressed class space", "PermGen space"),
	},
	{
		Name: "out_of_memory_threads", Versions: "Tomcat 10.1.60 on JDK 17 [run]; the text of JDK 8 [text]",
		Meaning: "The kernel refused another thread: a process or memory limit, not the heap.",
		Next:    "jvm_threads_current, ulimit -u, the cgroup's pids.max and memory.",
		Labels:  port,
		rules:   oomRules("unable to create native thread", "unable to create new native thread"),
	},
	{
		Name: "out_of_memory_direct", Versions: "JDK 17.0.15 and 25.0.3 [run]; the text of JDK 8 [text]",
		Meaning: "Direct buffers reached MaxDirectMemorySize.",
		Next:    "The number of connections and their buffers; -XX:MaxDirectMemorySize.",
		rules:   oomRules("Direct buffer memory", "Cannot reserve"),
	},
	{
		Name: "out_of_memory_array", Versions: "JDK 17.0.15 and 25.0.3 [run]",
		Meaning: "Something asked for one array beyond what the VM can make: a fault in a request or in the code.",
		Next:    "The frames below: who builds that array.",
		rules:   oomRules("Requested array size exceeds VM limit"),
	},
	{
		Name: "request_failed_out_of_memory", Versions: "Tomcat 10.1.60 [run]",
		Meaning: "A request died of OutOfMemoryError: the client got no answer, and the access log says 200.",
		Next:    "out_of_memory_heap; the client's own error count, since the access log is wrong.",
		Labels:  port,
		rules: []rule{
			{class: []string{"AbstractProtocol$ConnectionHandler", "AbstractProtocol$AbstractConnectionHandler", "Http11NioProtocol", "Http11Protocol", "NioEndpoint$SocketProcessor", "Nio2Endpoint$SocketProcessor"}, thrown: []string{oom}},
		},
	},
	{
		Name: "exit_on_out_of_memory", Versions: "JDK 17.0.15 and 25.0.3 [run]",
		Meaning: "The JVM ended itself (-XX:+ExitOnOutOfMemoryError or +CrashOnOutOfMemoryError).",
		Next:    "Whether it was started again (target_restarts_total), and why the heap was full.",
		rules:   []rule{{raw: []string{"Terminating due to java.lang.OutOfMemoryError", "Aborting due to java.lang.OutOfMemoryError"}}},
	},
	{
		Name: "native_thread_failed", Versions: "JDK 17 [run]; the text of JDK 8 [text]",
		Meaning: "The JVM itself says that the kernel gave no thread.",
		Next:    "As for out_of_memory_threads, which tells what died of it.",
		rules: []rule{
			{raw: []string{"["}, rawHas: []string{"Failed to start the native thread for "}},
			{raw: []string{"OpenJDK 64-Bit Server VM warning: ", "Java HotSpot(TM) 64-Bit Server VM warning: "}, rawHas: []string{"Failed to start the native thread for ", "Attempt to allocate stack guard pages failed"}},
		},
	},
	{
		Name: "jvm_crash", Versions: "JDK 17.0.15 and 25.0.3 [run]",
		Meaning: "The JVM crashed, or ran out of native memory, and is writing an hs_err file.",
		Next:    "The hs_err file in the working directory: its first 20 lines.",
		rules:   []rule{{raw: []string{"# A fatal error has been detected by the Java Runtime Environment", "# There is insufficient memory for the Java Runtime Environment to continue"}}},
	},
	{
		Name: "heap_dump", Versions: "JDK 17.0.15 and 25.0.3 [run]",
		Meaning: "The JVM writes a heap dump (-XX:+HeapDumpOnOutOfMemoryError): it stands still meanwhile, and the file is as big as the heap.",
		Next:    "Free space of the folder; the dump in a heap analyser.",
		rules:   []rule{{raw: []string{"Dumping heap to "}}},
	},
	{
		Name: "hs_err_file", Versions: "JDK 17.0.15 and 25.0.3 [run]",
		Meaning: "An hs_err_pidN.log appeared in the working directory: a JVM of this folder crashed.",
		Next:    "Its first 20 lines, and whether the server was started again.",
	},
	{
		Name: "heap_dump_file", Versions: "JDK 17.0.15 and 25.0.3 [run]",
		Meaning: "A java_pidN.hprof appeared in the working directory.",
		Next:    "Free space of the folder; the dump in a heap analyser.",
	},
	{
		Name: "stack_overflow", Versions: "Tomcat 10.1.60, JDK 17.0.15 and 25.0.3 [run]",
		Meaning: "A recursion did not end, or the stack (-Xss) is too small for it.",
		Next:    "The frames that repeat.",
		rules:   []rule{{thrown: []string{"java.lang.StackOverflowError"}}, {uncaught: true, thrown: []string{"java.lang.StackOverflowError"}}},
	},
	{
		Name: "nio2_thread_died", Versions: "Tomcat 9.0.98, 10.1.34, 10.1.60 and 11.0.24 NIO2 on JDK 17 [run]",
		Meaning: "A thread of the NIO2 connector died of a rejected task. Its clients hang, and after a few of these the connector may never answer again, with the process alive and the log quiet.",
		Next:    "connector_stalled and tcp_listen_queue; restart the server; use NIO, or no bounded Executor with NIO2.",
		rules: []rule{
			{uncaught: true, thrown: []string{"java.nio.channels.ShutdownChannelGroupException"}},
			{thrown: []string{"java.nio.channels.ShutdownChannelGroupException"}},
		},
	},
	{
		Name: "poller_died", Versions: "Tomcat 10.1.60 NIO on JDK 17 [run]",
		Meaning: "The connector's Poller thread ended. Connections are accepted from now on and never answered.",
		Next:    "Restart the server; then what killed it, usually out_of_memory_threads.",
		Labels:  port,
		rules:   []rule{{uncaught: true, thread: []string{"-Poller", "-ClientPoller"}}},
	},
	{
		Name: "acceptor_died", Versions: "the thread's name by Tomcat 7 to 11 and Jetty 9.4 and 12 [run]; such a death itself was not seen",
		Meaning: "The connector's Acceptor thread ended: no connection is accepted any more.",
		Next:    "Restart the server; then what killed it.",
		Labels:  port,
		rules:   []rule{{uncaught: true, thread: []string{"-Acceptor", "-acceptor-"}}},
	},
	{
		Name: "thread_died", Versions: "JDK 17.0.15 and 25.0.3 [run]",
		Meaning: "A thread ended by an exception that nobody caught, and is told on stderr only.",
		Next:    "Its name: whose work is not done any more.",
		rules:   []rule{{uncaught: true, thread: []string{""}}},
	},
	{
		Name: "stuck_thread", Versions: "Tomcat 10.1.60 [run]",
		Meaning: "StuckThreadDetectionValve: a request has been running beyond the threshold. The trace is where it is now, no failure.",
		Next:    "The URL and the frames of the record; the same frames in several records name the culprit.",
		Labels:  port,
		rules:   []rule{{class: []string{"StuckThreadDetectionValve"}, method: []string{"notifyStuckThreadDetected"}, noException: true}, {class: []string{"StuckThreadDetectionValve"}, has: []string{"may be stuck"}, noException: true}},
	},
	{
		Name: "stuck_thread_completed", Versions: "Tomcat 10.1.60 [run]",
		Meaning: "A request that had been reported as stuck ended.",
		Next:    "How long it took: it stands in the record.",
		Labels:  port,
		rules:   []rule{{class: []string{"StuckThreadDetectionValve"}, method: []string{"notifyStuckThreadCompleted"}}, {class: []string{"StuckThreadDetectionValve"}, has: []string{"was previously reported to be stuck"}}},
	},
	{
		Name: "address_in_use", Versions: "Tomcat 7.0.109, 8.5.32, 9.0.98, 10.1.34 and 11.0.24 [run]; Jetty (Failed to bind to) [text]",
		Meaning: "The connector's port belongs to another process.",
		Next:    "Who listens there: often the last run of the same server that has not ended.",
		Labels:  port,
		rules:   []rule{{not: []string{"AbstractProtocol"}, thrown: []string{"java.net.BindException", "java.io.IOException"}, excText: []string{"Address already in use", "Failed to bind to "}}},
	},
	{
		Name: "connector_failed", Versions: "Tomcat 7.0.109, 8.5.32, 9.0.98, 10.1.34 and 11.0.24 [run]; 9.0 and 10.1 tell a protocol class that is not there in two records, and it counts twice",
		Meaning: "A connector did not start. Tomcat says \"Server startup in\" all the same, with no listener.",
		Next:    "The record's cause: address_in_use, a certificate, a protocol that this version has not.",
		Labels:  port,
		rules: []rule{
			{class: []string{"Connector"}, method: []string{"<init>", "initInternal", "startInternal"}, min: Severe},
			{text: []string{"Failed to initialize connector ", "Failed to start connector ", "Protocol handler initialization failed", "Protocol handler start failed", "Protocol handler instantiation failed"}},
			{class: []string{"StandardService"}, method: []string{"initInternal", "startInternal"}, thrown: []string{"org.apache.catalina.LifecycleException"}},
			{class: []string{"LifecycleBase", "Catalina"}, thrown: []string{"org.apache.catalina.LifecycleException"}, excText: []string{"Protocol handler "}},
		},
	},
	{
		Name: "connection_pool_exhausted", Versions: "HikariCP, Tomcat JDBC, DBCP 1 and 2 [text]",
		Meaning: "No connection to the database came free within the time-out: requests wait and fail while threads pile up.",
		Next:    "The database's latency and locks; the pool's size against the connector's threads.",
		rules: []rule{
			{thrown: []string{"java.sql.SQLTransientConnectionException"}, excText: []string{"Connection is not available, request timed out"}},
			{thrown: []string{"org.apache.tomcat.jdbc.pool.PoolExhaustedException"}},
			{thrown: []string{"java.sql.SQLException", "org.apache.tomcat.dbcp.dbcp2.SQLExceptionList", "org.apache.commons.dbcp.SQLNestedException", "org.apache.commons.dbcp2.PoolExhaustedException"}, excText: []string{"Cannot get a connection, pool error", "Timeout waiting for idle object"}},
			{class: []string{"SqlExceptionHelper"}, has: []string{"Connection is not available, request timed out", "Cannot get a connection, pool error"}},
		},
	},
	{
		Name: "client_abort", Versions: "the classes of Tomcat and Jetty [text]",
		Meaning: "A client went away before its answer was written.",
		Next:    "Latency: clients and balancers that give up are a sign of slowness, not of the network.",
		rules:   []rule{{thrown: []string{"org.apache.catalina.connector.ClientAbortException", "org.eclipse.jetty.io.EofException"}}},
	},
	{
		Name: "tls_handshake_failed", Versions: "the JDK's class [text]",
		Meaning: "A TLS handshake failed: a client with other protocols or ciphers, or a certificate it does not trust.",
		Next:    "The exception's text; one client or all.",
		rules:   []rule{{min: Finest + 1, thrown: []string{"javax.net.ssl.SSLHandshakeException"}}},
	},
	{
		Name: "header_too_large", Versions: "Tomcat 9.0.98, 10.1.34 and 11.0.24, Jetty 9.4.57 [run]",
		Meaning: "A request's line and headers don't fit the buffer: answered 400, 414 or 431.",
		Next:    "Cookies that grow; maxHttpRequestHeaderSize or requestHeaderSize.",
		rules: []rule{
			{class: []string{"Http11Processor"}, min: Debug, thrown: []string{"java.lang.IllegalArgumentException"}, excText: []string{"Request header is too large"}},
			{class: []string{"Http11Processor"}, min: Debug, thrown: []string{"java.lang.IllegalArgumentException"}, frame: []string{"Http11InputBuffer.fill(", "Http11InputBuffer.parseHeaders(", "InternalNioInputBuffer.fill(", "InternalInputBuffer.fill("}},
			{class: []string{"HttpParser"}, text: []string{"URI is too large", "Header is too large", "Request Header is too large"}},
		},
	},
	{
		Name: "low_resources", Versions: "Jetty 9.4.57 [run], 9.4 to 12 [src]",
		Meaning: "Jetty's LowResourceMonitor found the pool low on threads, or memory or connections beyond their limit; idle connections are now closed sooner.",
		Next:    "jetty_queued_thread_pool_*; the reasons stand in the record.",
		rules:   []rule{{class: []string{"LowResourceMonitor"}, text: []string{"Low Resources:"}}, {text: []string{"LOW ON THREADS", "OUT OF THREADS"}, min: Info}},
	},
	{
		Name: "insufficient_threads", Versions: "Jetty 9.4.57 [run], 9.4 to 12 [src]",
		Meaning: "The pool is smaller than acceptors and selectors need: the server does not start, or starts with nothing left for requests.",
		Next:    "maxThreads against the acceptors and selectors of all connectors.",
		rules: []rule{
			{thrown: []string{"java.lang.IllegalStateException"}, excText: []string{"Insufficient configured threads:"}},
			{class: []string{"ThreadPoolBudget"}, text: []string{"Low configured threads:"}, min: Info},
		},
	},
	{
		Name: "accept_limit", Versions: "Jetty 9.4 to 12 [src]",
		Meaning: "Jetty stopped accepting: the rate or the number of connections is at its configured limit.",
		Next:    "AcceptRateLimit and ConnectionLimit; who connects so often.",
		rules: []rule{
			{class: []string{"AcceptRateLimit"}, text: []string{"AcceptLimit rate exceeded"}},
			{class: []string{"ConnectionLimit", "NetworkConnectionLimit"}, text: []string{"Connection Limit(", "Connection limit "}, min: Info},
		},
	},
	{
		Name: "apr_poller_failed", Versions: "Tomcat 7 to 9 APR [src]",
		Meaning: "The native poller failed and was made anew.",
		Next:    "The error number in the record; move to NIO, APR is gone from 10.1.",
		rules:   []rule{{class: []string{"AprEndpoint$Poller", "AprEndpoint"}, text: []string{"Critical poller failure"}}},
	},
}

func oomRules(texts ...string) []rule {
	return []rule{
		{min: Finest, thrown: []string{oom}, excText: texts},
		{uncaught: true, thrown: []string{oom}, excText: texts},
	}
}
