package jvm

import (
	"strings"

	"github.com/jvm-sidecar/sidecar/internal/hsperf"
)

// writeInfo puts down what the JVM is and how it was started.
func (p *Poller) writeInfo() {
	d, set := &p.data, p.set
	runtime, vendor, version := runtimeOf(d)
	if version != "" {
		set.Gauge(runtimeInfo, runtime, vendor, version).Set(1)
	}
	args, _ := d.String("java.rt.vmArgs")
	more, _ := d.String("java.rt.vmFlags") // from .hotspotrc and -XX:Flags
	if raw := args + " " + more; raw != p.raw || p.args == nil {
		p.raw, p.args = raw, pairs(flagsOf(strings.Fields(raw)))
	}
	for i := 0; i+1 < len(p.args); i += 2 {
		set.Gauge(flagInfo, p.args[i], p.args[i+1]).Set(1)
	}
}

// runtimeOf gives the labels as client_java fills them. The runtime's version
// stands in the internal version, behind "JRE (".
func runtimeOf(d *hsperf.Data) (runtime, vendor, version string) {
	name, _ := d.String("java.property.java.vm.name")
	vendor, _ = d.String("java.property.java.vm.vendor")
	version, _ = d.String("java.property.java.version")
	internal, _ := d.String("sun.rt.internalVersion")
	if _, rest, ok := strings.Cut(internal, " JRE ("); ok {
		if v, _, ok := strings.Cut(rest, ")"); ok && v != "" {
			version = v
		}
	}
	switch {
	case strings.HasPrefix(name, "OpenJDK"):
		runtime = "OpenJDK Runtime Environment"
	case strings.HasPrefix(name, "Java HotSpot"):
		runtime = "Java(TM) SE Runtime Environment"
	default:
		runtime = name
	}
	return runtime, vendor, version
}

// A flag is one option in its long form: -Xmx1g is MaxHeapSize=1g.
type flag struct{ name, value string }

// shown are the options that get a series: heap, collector, stacks, GC threads,
// diagnosis. Others are on the page only.
var shown = map[string]bool{
	"MaxHeapSize": true, "InitialHeapSize": true, "NewSize": true, "MaxNewSize": true, "NewRatio": true, "SurvivorRatio": true,
	"MaxTenuringThreshold": true, "MaxMetaspaceSize": true, "MetaspaceSize": true, "PermSize": true, "MaxPermSize": true,
	"MaxRAMPercentage": true, "InitialRAMPercentage": true, "MaxRAM": true, "MaxDirectMemorySize": true, "ThreadStackSize": true,
	"ReservedCodeCacheSize": true, "SoftMaxHeapSize": true, "G1HeapRegionSize": true, "MaxGCPauseMillis": true,
	"InitiatingHeapOccupancyPercent": true, "CMSInitiatingOccupancyFraction": true, "ParallelGCThreads": true, "ConcGCThreads": true,
	"UseSerialGC": true, "UseParallelGC": true, "UseParallelOldGC": true, "UseParNewGC": true, "UseConcMarkSweepGC": true,
	"UseG1GC": true, "UseZGC": true, "UseShenandoahGC": true, "UseEpsilonGC": true, "ZGenerational": true,
	"UseCompressedOops": true, "UseLargePages": true, "UseStringDeduplication": true, "AlwaysPreTouch": true,
	"ActiveProcessorCount": true, "UseContainerSupport": true, "UseCGroupMemoryLimitForHeap": true,
	"DisableExplicitGC": true, "ExplicitGCInvokesConcurrent": true, "MaxFDLimit": true, "DisableAttachMechanism": true,
	"HeapDumpOnOutOfMemoryError": true, "ExitOnOutOfMemoryError": true, "CrashOnOutOfMemoryError": true,
	"UsePerfData": true, "PerfDisableSharedMem": true, "ReduceSignalUsage": true, "Xloggc": true, "Xlog": true,
}

// flagsOf turns arguments into long options, in their order; of an option given
// twice the last counts. Only options of the JVM are taken: system properties
// may hold secrets.
func flagsOf(args []string) []flag {
	var out []flag
	put := func(name, value string) {
		for i := range out {
			if out[i].name == name {
				out[i].value = value
				return
			}
		}
		out = append(out, flag{name, value})
	}
	for _, a := range args {
		switch {
		case strings.HasPrefix(a, "-XX:+"):
			put(a[5:], "true")
		case strings.HasPrefix(a, "-XX:-"):
			put(a[5:], "false")
		case strings.HasPrefix(a, "-XX:"):
			if name, value, ok := strings.Cut(a[4:], "="); ok {
				put(name, value)
			}
		case strings.HasPrefix(a, "-Xmx"):
			put("MaxHeapSize", a[4:])
		case strings.HasPrefix(a, "-Xms"):
			put("InitialHeapSize", a[4:])
		case strings.HasPrefix(a, "-Xmn"):
			put("NewSize", a[4:])
			put("MaxNewSize", a[4:])
		case strings.HasPrefix(a, "-Xss"):
			put("ThreadStackSize", a[4:])
		case a == "-Xrs":
			put("ReduceSignalUsage", "true")
		case strings.HasPrefix(a, "-Xloggc:"):
			put("Xloggc", a[len("-Xloggc:"):])
		case strings.HasPrefix(a, "-Xlog:") && strings.Contains(a, "gc"):
			put("Xlog", a[len("-Xlog:"):])
		}
	}
	return out
}

// pairs keeps those that get a series, as name, value, name, value.
func pairs(flags []flag) []string {
	out := []string{}
	for _, f := range flags {
		if shown[f.name] {
			out = append(out, f.name, f.value[:min(len(f.value), 200)])
		}
	}
	return out
}
