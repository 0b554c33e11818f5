package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// The peers that the benchmarks hold the product against.

// StartProcessExporter starts Debian's process-exporter as the package has it,
// for the JVMs whose command line has the word, with their threads. Others are
// left alone: it reads smaps, which stops a JVM. addr is where it is scraped.
func StartProcessExporter(dir, word string) (c *Child, addr string, err error) {
	path, env, err := tool("prometheus-process-exporter")
	if err != nil {
		return nil, "", err
	}
	port, err := FreePort()
	if err != nil {
		return nil, "", err
	}
	addr = fmt.Sprintf("127.0.0.1:%d", port)
	config := filepath.Join(dir, "process-exporter.yml")
	if err := os.WriteFile(config, fmt.Appendf(nil, "process_names:\n- comm: [java]\n  cmdline: [%q]\n", word), 0o644); err != nil {
		return nil, "", err
	}
	output := filepath.Join(dir, "process-exporter.log")
	c, err = startDaemon("process-exporter", output, env, path,
		"-config.path", config, "-children=false", "-threads=true", "-web.listen-address", addr)
	if err != nil {
		return nil, "", err
	}
	return c, addr, c.ready("http://"+addr+"/", output)
}

// jmxAgent is the version of Prometheus' Java agent that is compared with.
const jmxAgent = "1.0.1"

// JMXAgent fetches Prometheus' Java agent and returns the option that loads it
// with all beans on a port.
func JMXAgent(dir string, port int) (option string, err error) {
	home, err := once("jmx-agent-"+jmxAgent, "jmx_prometheus_javaagent "+jmxAgent, "the agent to compare with", func(ctx context.Context, dir string) error {
		_, err := mavenCopy(ctx, "io.prometheus.jmx:jmx_prometheus_javaagent:"+jmxAgent+":jar", dir)
		return err
	})
	if err != nil {
		return "", err
	}
	config := filepath.Join(dir, "jmx.yml")
	if err := os.WriteFile(config, []byte("lowercaseOutputName: true\nrules:\n- pattern: \".*\"\n"), 0o644); err != nil {
		return "", err
	}
	return fmt.Sprintf("-javaagent:%s=127.0.0.1:%d:%s", filepath.Join(home, "jmx_prometheus_javaagent-"+jmxAgent+".jar"), port, config), nil
}

// TCNative is the folder of the native library that Tomcat's APR connector
// needs, with the libraries that it needs in turn.
func TCNative() (folder string, err error) {
	dir, err := debian("libtcnative-1", "the native library of Tomcat's APR connector")
	if err != nil {
		return "", err
	}
	found, _ := filepath.Glob(filepath.Join(dir, "usr/lib/*-linux-*/libtcnative-1.so*"))
	if len(found) == 0 {
		return "", Missing{fmt.Errorf("package libtcnative-1 has no libtcnative-1.so")}
	}
	return filepath.Dir(found[0]), nil
}
