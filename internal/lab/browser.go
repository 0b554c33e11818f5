package lab

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// A Browser is a real Chromium without a screen that shows one page. It is
// driven over two pipes by Chromium's own DevTools protocol, so no port is open
// and no driver is needed.
type Browser struct {
	*Child
	to      *os.File
	session string
	profile string

	mu       sync.Mutex
	next     int
	waiting  map[int]chan devtools
	console  []string
	requests []string
}

// devtools is one message of the protocol, in either direction.
type devtools struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// browser finds a Chromium on the PATH, or unpacks the one without a screen.
func browser() (path string, env []string, err error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, os.Environ(), nil
		}
	}
	return tool("chromium-headless-shell")
}

// StartBrowser starts Chromium with a private profile below dir and a page of
// the given size. No name but the loopback's own address means anything to it, so
// that a page which asks elsewhere fails here as it would without a network.
func StartBrowser(dir string, width, height int) (*Browser, error) {
	path, env, err := browser()
	if err != nil {
		return nil, err
	}
	// Chromium reads what we write from descriptor 3 and answers on 4.
	theirs, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	from, mine, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "chromium.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
		"--no-first-run", "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
		"--user-data-dir="+filepath.Join(dir, "profile"), fmt.Sprintf("--window-size=%d,%d", width, height), "about:blank")
	cmd.Env, cmd.Stdout, cmd.Stderr = env, log, log
	cmd.ExtraFiles = []*os.File{theirs, mine}
	b := &Browser{to: to, profile: filepath.Join(dir, "profile"), waiting: map[int]chan devtools{}}
	b.Child, err = start("chromium", cmd)
	theirs.Close()
	mine.Close()
	if err != nil {
		return nil, err
	}
	go b.listen(from)
	if err := b.open(); err != nil {
		b.Stop()
		said, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("chromium: %w\n%s", err, tail(string(said)))
	}
	return b, nil
}

func (b *Browser) open() error {
	var t struct{ TargetID string }
	if err := b.Call("Target.createTarget", map[string]any{"url": "about:blank"}, &t); err != nil {
		return err
	}
	var s struct{ SessionID string }
	if err := b.Call("Target.attachToTarget", map[string]any{"targetId": t.TargetID, "flatten": true}, &s); err != nil {
		return err
	}
	b.session = s.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network", "Performance"} {
		if err := b.Call(domain+".enable", nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// Stop ends Chromium. Its helpers outlive it for a moment and still write into the
// profile, so that goes here, in as many tries as it takes, and not with the
// caller's folder.
func (b *Browser) Stop() {
	b.Child.Stop()
	Until(10*time.Second, func() bool { return os.RemoveAll(b.profile) == nil })
}

// Call is one command of the DevTools protocol.
func (b *Browser) Call(method string, params, result any) error {
	b.mu.Lock()
	b.next++
	m := devtools{ID: b.next, Session: b.session, Method: method, Params: params}
	answer := make(chan devtools, 1)
	b.waiting[m.ID] = answer
	b.mu.Unlock()
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if _, err := b.to.Write(append(text, 0)); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	select {
	case a := <-answer:
		if a.Error != nil {
			return fmt.Errorf("%s: %s", method, a.Error.Message)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(a.Result, result)
	case <-time.After(30 * time.Second):
		return fmt.Errorf("%s: no answer in 30 s", method)
	}
}

// listen reads answers and events until Chromium is gone.
func (b *Browser) listen(from *os.File) {
	defer from.Close()
	r := bufio.NewReader(from)
	for {
		text, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var m struct {
			devtools
			Params json.RawMessage `json:"params"`
		}
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		if m.ID != 0 {
			if c := b.waiting[m.ID]; c != nil {
				c <- m.devtools
				delete(b.waiting, m.ID)
			}
		} else {
			b.event(m.Method, m.Params)
		}
		b.mu.Unlock()
	}
}

// event notes what a person with the console open would see.
func (b *Browser) event(method string, params json.RawMessage) {
	var p struct {
		Type  string
		Args  []struct{ Value, Description any }
		Entry struct{ Level, Text, URL string }
		// The word of an exception is in one of two places.
		ExceptionDetails struct {
			Text      string
			Exception struct{ Description string }
		}
		Request struct{ URL string }
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	switch method {
	case "Runtime.consoleAPICalled":
		if p.Type == "error" || p.Type == "warning" || p.Type == "assert" {
			b.console = append(b.console, fmt.Sprintf("%s: %v", p.Type, p.Args))
		}
	case "Runtime.exceptionThrown":
		b.console = append(b.console, "exception: "+p.ExceptionDetails.Text+" "+p.ExceptionDetails.Exception.Description)
	case "Log.entryAdded":
		if p.Entry.Level == "error" || p.Entry.Level == "warning" {
			b.console = append(b.console, p.Entry.Level+": "+p.Entry.Text+" "+p.Entry.URL)
		}
	case "Network.requestWillBeSent":
		b.requests = append(b.requests, p.Request.URL)
	}
}

// Console is what the page complained about so far: errors, warnings and
// exceptions, those of the content security policy among them.
func (b *Browser) Console() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.console...)
}

// Requests are the addresses that were asked for so far.
func (b *Browser) Requests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.requests...)
}

// Go opens an address.
func (b *Browser) Go(url string) error {
	var r struct{ ErrorText string }
	if err := b.Call("Page.navigate", map[string]any{"url": url}, &r); err != nil {
		return err
	}
	if r.ErrorText != "" {
		return errors.New(url + ": " + r.ErrorText)
	}
	return nil
}

// Eval runs JavaScript in the page, waits for what it promises, and puts its
// value into result.
func (b *Browser) Eval(js string, result any) error {
	var r struct {
		Result struct {
			Value json.RawMessage
		}
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	if err := b.Call("Runtime.evaluate", map[string]any{"expression": js, "returnByValue": true, "awaitPromise": true}, &r); err != nil {
		return err
	}
	if e := r.ExceptionDetails; e != nil {
		return fmt.Errorf("%s %s in %s", e.Text, e.Exception.Description, js)
	}
	if result == nil {
		return nil
	}
	if len(r.Result.Value) == 0 {
		return errors.New("no value: " + js)
	}
	return json.Unmarshal(r.Result.Value, result)
}

// Until waits until JavaScript in the page says true.
func (b *Browser) Until(limit time.Duration, js string) bool {
	return Until(limit, func() bool {
		var ok bool
		return b.Eval("Boolean("+js+")", &ok) == nil && ok
	})
}

// Screenshot writes the whole page as a PNG.
func (b *Browser) Screenshot(path string) error {
	var r struct{ Data string }
	if err := b.Call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &r); err != nil {
		return err
	}
	png, err := base64.StdEncoding.DecodeString(r.Data)
	if err != nil {
		return err
	}
	return os.WriteFile(path, png, 0o644)
}

// Durations are how long the renderer has worked since the page was opened, in
// seconds and by its own account: TaskDuration is all, and ScriptDuration,
// LayoutDuration and RecalcStyleDuration are parts of it.
func (b *Browser) Durations() (map[string]float64, error) {
	var r struct {
		Metrics []struct {
			Name  string
			Value float64
		}
	}
	if err := b.Call("Performance.getMetrics", nil, &r); err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for _, m := range r.Metrics {
		if strings.HasSuffix(m.Name, "Duration") {
			out[m.Name] = m.Value
		}
	}
	if _, ok := out["TaskDuration"]; !ok {
		return nil, errors.New("chromium has no TaskDuration")
	}
	return out, nil
}

// Outside are the requests that left for anywhere but the given origin.
func (b *Browser) Outside(origin string) (out []string) {
	for _, url := range b.Requests() {
		if url != origin && !strings.HasPrefix(url, origin+"/") && !strings.HasPrefix(url, "data:") && url != "about:blank" {
			out = append(out, url)
		}
	}
	return out
}
