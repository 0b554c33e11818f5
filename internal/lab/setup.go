package lab

import "fmt"

// Setup fetches everything the tests may ask for. It goes on after a failure,
// so that one run says all that is missing.
func Setup() (missing []error) {
	say("servers and tools for the tests are kept in %s", Cache())
	try := func(err error) {
		if err != nil {
			missing = append(missing, err)
		}
	}
	jdk, err := AnyJDK(17)
	try(err)
	if err == nil {
		say("JDKs: %s", describe(JDKs()))
	}
	for _, v := range append(Tomcats, DebianTomcat) {
		home, err := TomcatHome(v)
		try(err)
		if err == nil && jdk.Home != "" {
			o := Tomcat{Version: v}
			_, err = compileServlet(jdk, home+"/lib/servlet-api.jar", map[bool]string{true: "jakarta", false: "javax"}[o.jakarta()])
			try(err)
		}
	}
	for _, v := range Jetties {
		_, err := JettyHome(v)
		try(err)
	}
	for _, program := range []string{"prometheus", "promtool", "prometheus-alertmanager", "ab", "wrk", emulator} {
		try(Tool(program))
	}
	_, err = Pinned()
	try(err)
	_, _, err = browser()
	try(err)
	_, err = Axe()
	try(err)
	return missing
}

// Tool fetches one of the tools, should it be missing, and says why it can't be
// had.
func Tool(program string) error {
	_, _, err := tool(program)
	return err
}

func describe(jdks []JDK) (s string) {
	for i, j := range jdks {
		if i > 0 {
			s += ", "
		}
		s += fmt.Sprintf("%s (%s)", j.Version, j.Home)
	}
	return s
}
