package process

import "github.com/jvm-sidecar/sidecar/internal/metric"

// Metrics are the families of this room: those of one target, which New's
// poller writes, and those of the machine, which NewHost's poller writes.
var Metrics = []*metric.Family{
	cpuSeconds, cpuMode, cpuUsage, cpuLimit,
	residentMemory, virtualMemory, swapMemory,
	openFDs, maxFDs, maxProcesses, processThreads, startTime,
	pageFaults, contextSwitches, runDelay, diskBytes,
	poolThreads, poolMax, poolCPU, poolStates, poolSampled,
	listenQueue, listenLimit, listenOverflows, listenDrops,
	acceptCount, maxConnections, requestsWaiting, connections, stalled,
	retransmits, networkDrops,
	cgroupMemory, cgroupMemoryLimit, cgroupCPULimit,
	cgroupPeriods, cgroupThrottledPeriods, cgroupThrottled, cgroupPressure, oomKills,
	hostCPU, hostBusy, hostSteal, hostCores, hostRunnable, hostPressure, hostMemoryAvailable, hostMemory,
}

// The process as a whole. The names without a label are those of client_java,
// and describe the JVM, never the sidecar.
var (
	cpuSeconds = &metric.Family{Name: "process_cpu_seconds_total", Kind: metric.Counter, Source: "/proc/PID/stat",
		Help: "CPU time of the JVM, user and system, in seconds."}
	cpuMode = &metric.Family{Name: "process_cpu_mode_seconds_total", Kind: metric.Counter, Labels: []string{"mode"}, Source: "/proc/PID/stat",
		Help: "CPU time of the JVM by mode: in its own code (user) or in the kernel for it (system)."}
	cpuUsage = &metric.Family{Name: "process_cpu_usage_ratio", Kind: metric.Gauge, Source: "/proc/PID/stat",
		Help: "CPU time used since the last sample as a share of what the JVM may use: 1 is all of its cores."}
	cpuLimit = &metric.Family{Name: "process_cpu_limit_cores", Kind: metric.Gauge, Source: "/proc/PID/status, cgroup",
		Help: "Cores that the JVM may use: its CPU affinity, or the quota of its cgroup where that is less."}
	residentMemory = &metric.Family{Name: "process_resident_memory_bytes", Kind: metric.Gauge, Source: "/proc/PID/statm",
		Help: "Memory of the JVM that is in RAM: heap, code, stacks and everything else."}
	virtualMemory = &metric.Family{Name: "process_virtual_memory_bytes", Kind: metric.Gauge, Source: "/proc/PID/statm",
		Help: "Address space of the JVM. A JVM reserves far more than it uses."}
	swapMemory = &metric.Family{Name: "process_swap_bytes", Kind: metric.Gauge, Source: "/proc/PID/status",
		Help: "Memory of the JVM that was swapped out. Anything but 0 makes collections slow."}
	openFDs = &metric.Family{Name: "process_open_fds", Kind: metric.Gauge, Source: "/proc/PID/fd",
		Help: "Open file descriptors of the JVM; every connection is one."}
	maxFDs = &metric.Family{Name: "process_max_fds", Kind: metric.Gauge, Source: "/proc/PID/limits",
		Help: "Descriptors the JVM may open: the soft limit in force, which HotSpot raises to the hard one at its start."}
	maxProcesses = &metric.Family{Name: "process_max_processes", Kind: metric.Gauge, Source: "/proc/PID/limits",
		Help: "Threads and processes that the JVM's user may have in all (ulimit -u). Absent when there is no limit."}
	processThreads = &metric.Family{Name: "process_threads", Kind: metric.Gauge, Source: "/proc/PID/stat",
		Help: "Native threads of the JVM: Java's platform threads and the JVM's own."}
	startTime = &metric.Family{Name: "process_start_time_seconds", Kind: metric.Gauge, Source: "/proc/PID/stat",
		Help: "Start of the JVM as Unix time; it is worked out once, so it does not move with the clock."}
	pageFaults = &metric.Family{Name: "process_page_faults_total", Kind: metric.Counter, Labels: []string{"kind"}, Source: "/proc/PID/stat",
		Help: "Page faults of the JVM; a major one had to wait for a disk."}
	contextSwitches = &metric.Family{Name: "process_context_switches_total", Kind: metric.Counter, Labels: []string{"kind"}, Source: "/proc/PID/task/*/status",
		Help: "Context switches of all threads of the JVM since the sidecar saw them first: voluntary when a thread waits, involuntary when it had to make room. Threads are read in turns, so it may lag by some seconds."}
	runDelay = &metric.Family{Name: "process_run_delay_seconds_total", Kind: metric.Counter, Source: "/proc/PID/task/*/schedstat",
		Help: "Time that threads of the JVM were ready to run and waited for a core, summed over threads. When it grows as fast as the CPU time, cores are what is short."}
	diskBytes = &metric.Family{Name: "process_disk_bytes_total", Kind: metric.Counter, Labels: []string{"direction"}, Source: "/proc/PID/io",
		Help: "Bytes that the JVM made the block devices read and write."}
)

// Threads by pool.
var (
	poolThreads = &metric.Family{Name: "jvm_threadpool_threads", Kind: metric.Gauge, Labels: []string{"pool"}, Open: []string{"pool"}, Source: "/proc/PID/task/*/stat",
		Help: "Live threads of a pool, by the name its threads have in common."}
	poolMax = &metric.Family{Name: "jvm_threadpool_max_threads", Kind: metric.Gauge, Labels: []string{"pool"}, Source: "server settings",
		Help: "Threads that the server's settings allow the pool."}
	poolCPU = &metric.Family{Name: "jvm_threadpool_cpu_seconds_total", Kind: metric.Counter, Labels: []string{"pool"}, Open: []string{"pool"}, Source: "/proc/PID/task/*/stat",
		Help: "CPU time of a pool's threads, those that ended while the sidecar watched included."}
	poolStates = &metric.Family{Name: "jvm_threadpool_thread_states", Kind: metric.Gauge, Labels: []string{"pool", "state"}, Open: []string{"pool"}, Limit: 400, Source: "/proc/PID/task/*/stat",
		Help: "Threads of a pool by the kernel's state: running (or ready to run), sleeping (idle, or waiting for a lock or the network), disk (waiting for a disk), other."}
	poolSampled = &metric.Family{Name: "jvm_threadpool_sampled_ratio", Kind: metric.Gauge, Source: "/proc/PID/task/*/stat",
		Help: "Share of the threads whose state and CPU time were read in this sample; the others show what they showed before. 1 but for very many threads."}
)

// Sockets by serving port.
var (
	listenQueue = &metric.Family{Name: "tcp_listen_queue", Kind: metric.Gauge, Labels: []string{"port"}, Source: "sock_diag, /proc/PID/net/tcp",
		Help: "Connections that the kernel has established and the server has not accepted yet."}
	listenLimit = &metric.Family{Name: "tcp_listen_limit", Kind: metric.Gauge, Labels: []string{"port"}, Source: "sock_diag",
		Help: "Length at which the kernel lets the accept queue overflow: the configured backlog, cut to net.core.somaxconn. The queue shows one more when it is full."}
	listenOverflows = &metric.Family{Name: "tcp_listen_overflows_total", Kind: metric.Counter, Source: "/proc/PID/net/netstat",
		Help: "Connection attempts that found an accept queue full, of all listeners in the server's network namespace."}
	listenDrops = &metric.Family{Name: "tcp_listen_drops_total", Kind: metric.Counter, Source: "/proc/PID/net/netstat",
		Help: "Connection attempts dropped at listeners for any reason, in the server's network namespace."}
	acceptCount = &metric.Family{Name: "connector_accept_count", Kind: metric.Gauge, Labels: []string{"port"}, Source: "server settings",
		Help: "The configured backlog (acceptCount). The kernel may have cut it: see tcp_listen_limit."}
	maxConnections = &metric.Family{Name: "connector_max_connections", Kind: metric.Gauge, Labels: []string{"port"}, Source: "server settings",
		Help: "The configured number of connections at which the connector stops accepting. Absent when there is none."}
	requestsWaiting = &metric.Family{Name: "connector_requests_waiting", Kind: metric.Gauge, Labels: []string{"port"}, Source: "sock_diag, /proc/PID/net/tcp",
		Help: "Established connections with bytes that the server has not read: on NIO, APR, BIO and Jetty, requests that wait for a thread, and uploads not read yet; NIO2 hides those on kept connections. See docs/sockets.md."}
	connections = &metric.Family{Name: "connector_connections", Kind: metric.Gauge, Labels: []string{"port", "state"}, Source: "sock_diag, /proc/PID/net/tcp",
		Help: "Connections of a serving port by TCP state. More than 1,000 in time_wait are counted every fifth second."}
	stalled = &metric.Family{Name: "connector_stalled", Kind: metric.Gauge, Labels: []string{"port", "reason"}, Source: "sockets, threads, access log",
		Help: "1 when the connector no longer serves though the process lives: accept_queue (full, with idle threads), poller or acceptor (its thread is gone), thread (one of the two, which have one name after the kernel's cut), unread (requests that nobody reads, with idle threads)."}
	retransmits = &metric.Family{Name: "tcp_retransmitted_segments_total", Kind: metric.Counter, Source: "/proc/PID/net/snmp",
		Help: "TCP segments sent again, in the server's network namespace."}
	networkDrops = &metric.Family{Name: "network_dropped_packets_total", Kind: metric.Counter, Labels: []string{"direction"}, Source: "/proc/PID/net/dev",
		Help: "Packets dropped by the network interfaces of the server's network namespace."}
)

// The cgroup the process is in, version 1 or 2.
var (
	cgroupMemory = &metric.Family{Name: "cgroup_memory_bytes", Kind: metric.Gauge, Source: "cgroup",
		Help: "Memory charged to the JVM's cgroup, page cache included."}
	cgroupMemoryLimit = &metric.Family{Name: "cgroup_memory_limit_bytes", Kind: metric.Gauge, Source: "cgroup",
		Help: "Memory limit of the JVM's cgroup, the lowest up the tree. Absent when there is none."}
	cgroupCPULimit = &metric.Family{Name: "cgroup_cpu_limit_cores", Kind: metric.Gauge, Source: "cgroup",
		Help: "CPU quota of the JVM's cgroup in cores, the lowest up the tree. Absent when there is none."}
	cgroupPeriods = &metric.Family{Name: "cgroup_cpu_periods_total", Kind: metric.Counter, Source: "cgroup cpu.stat",
		Help: "Periods of the CPU quota in which the cgroup ran."}
	cgroupThrottledPeriods = &metric.Family{Name: "cgroup_cpu_throttled_periods_total", Kind: metric.Counter, Source: "cgroup cpu.stat",
		Help: "Periods in which the cgroup used up its quota and was stopped for the rest."}
	cgroupThrottled = &metric.Family{Name: "cgroup_cpu_throttled_seconds_total", Kind: metric.Counter, Source: "cgroup cpu.stat",
		Help: "Time for which the cgroup was stopped because its CPU quota was used up."}
	cgroupPressure = &metric.Family{Name: "cgroup_pressure_seconds_total", Kind: metric.Counter, Labels: []string{"resource", "kind"}, Source: "cgroup *.pressure",
		Help: "Time in which tasks of the cgroup waited for a resource: some of them, or all of them at once (full)."}
	oomKills = &metric.Family{Name: "target_oom_kills_total", Kind: metric.Counter, Source: "cgroup memory.events, memory.oom_control",
		Help: "Processes of the target's cgroup that the kernel killed because memory ran out."}
)

// The machine. These have no target: NewHost's poller writes them once.
var (
	hostCPU = &metric.Family{Name: "host_cpu_seconds_total", Kind: metric.Counter, Labels: []string{"mode"}, Source: "/proc/stat",
		Help: "CPU time of the machine by mode, summed over cores."}
	hostBusy = &metric.Family{Name: "host_cpu_busy_ratio", Kind: metric.Gauge, Source: "/proc/stat",
		Help: "Share of the machine's CPU time since the last sample that was neither idle nor waiting for a disk."}
	hostSteal = &metric.Family{Name: "host_cpu_steal_ratio", Kind: metric.Gauge, Source: "/proc/stat",
		Help: "Share of the machine's CPU time since the last sample that the hypervisor gave to others."}
	hostCores = &metric.Family{Name: "host_cpu_cores", Kind: metric.Gauge, Source: "/proc/stat",
		Help: "Cores of the machine."}
	hostRunnable = &metric.Family{Name: "host_runnable_tasks", Kind: metric.Gauge, Source: "/proc/stat",
		Help: "Tasks that run or are ready to. More than cores means that some wait."}
	hostPressure = &metric.Family{Name: "host_pressure_seconds_total", Kind: metric.Counter, Labels: []string{"resource", "kind"}, Source: "/proc/pressure",
		Help: "Time in which tasks of the machine waited for a resource: some of them, or all of them at once (full)."}
	hostMemoryAvailable = &metric.Family{Name: "host_memory_available_bytes", Kind: metric.Gauge, Source: "/proc/meminfo",
		Help: "Memory that programs can still get without swapping."}
	hostMemory = &metric.Family{Name: "host_memory_bytes", Kind: metric.Gauge, Source: "/proc/meminfo",
		Help: "Memory of the machine."}
)
