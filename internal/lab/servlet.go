package lab

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed servlet/Load.java
var servletSource string

// webXML maps the servlet. metadata-complete and the absent DTD keep servers
// from scanning jars and from asking the network for a schema.
const webXML = `<?xml version="1.0" encoding="UTF-8"?>
<web-app xmlns="%s" version="%s" metadata-complete="true">
  <servlet><servlet-name>load</servlet-name><servlet-class>Load</servlet-class><load-on-startup>1</load-on-startup><async-supported>true</async-supported></servlet>
  <servlet-mapping><servlet-name>load</servlet-name><url-pattern>/slow</url-pattern></servlet-mapping>
</web-app>
`

// writeWebapp makes the lab's web application in dir: the servlet, compiled
// against the server's own API jar, and a web.xml.
func writeWebapp(dir string, jdk JDK, apiJar string, jakarta bool) error {
	namespace, schema, version := "javax", "http://java.sun.com/xml/ns/javaee", "3.0"
	if jakarta {
		namespace, schema, version = "jakarta", "https://jakarta.ee/xml/ns/jakartaee", "5.0"
	}
	class, err := compileServlet(jdk, apiJar, namespace)
	if err != nil {
		return err
	}
	classes := filepath.Join(dir, "WEB-INF/classes")
	if err := os.MkdirAll(classes, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(classes, "Load.class"), class, 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "index.html"), []byte("<p>The lab's server</p>\n"), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "WEB-INF/web.xml"), fmt.Appendf(nil, webXML, schema, version), 0o644)
}

// compileServlet compiles Load.java once for each flavour and keeps the class
// in the cache: javac takes longer than the server's whole start. The class is
// for Java 8 whatever the compiler, so that any server here can load it.
func compileServlet(jdk JDK, apiJar, namespace string) ([]byte, error) {
	source := strings.ReplaceAll(servletSource, "NAMESPACE", namespace)
	sum := sha256.Sum256([]byte(source))
	name := filepath.Join("servlet", fmt.Sprintf("%s-%x", namespace, sum[:6]))
	dir, err := once(name, "the lab's servlet for "+namespace, "compiled by javac "+jdk.Version, func(ctx context.Context, dir string) error {
		java := filepath.Join(dir, "Load.java")
		if err := os.WriteFile(java, []byte(source), 0o644); err != nil {
			return err
		}
		// An API jar of a later Java than the class' is only read for its names.
		var err error
		for _, target := range [][]string{{"--release", "8"}, {"-source", "8", "-target", "8"}, nil} {
			args := append([]string{"-nowarn", "-proc:none", "-cp", apiJar, "-d", dir}, target...)
			if _, err = run(ctx, exec.Command(jdk.Tool("javac"), append(args, java)...)); err == nil {
				return nil
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, "Load.class"))
}
