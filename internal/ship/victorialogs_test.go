package ship

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

// TestVictoriaLogs pushes to a real server and finds every line again: in both
// encodings, equal lines of one instant, odd bytes, and a storm counted exactly.
func TestVictoriaLogs(t *testing.T) {
	if testing.Short() {
		t.Skip("a real server; not with -short")
	}
	v, err := lab.StartVictoriaLogs(t.TempDir())
	lab.Need(t, err)
	t.Cleanup(v.Stop)
	for _, encoding := range []string{"protobuf", "json"} {
		t.Run(encoding, func(t *testing.T) {
			target := "tomcat-" + encoding
			s := realShipper(t, "http://"+v.Addr+"/insert", func(c *Config) {
				c.Encoding, c.LinesPerSecond, c.BatchWait, c.BytesPerSecond = encoding, 50, 20*time.Millisecond, 0
			})
			tap := s.Tap(target, "applog", "catalina.out")
			at := time.Now().Truncate(time.Second).UnixNano()
			const each = 500
			for i := range each {
				tap.Offer(nil, &Entry{Level: "WARN", Event: "too_many_open_files", At: at, Line: []byte("the same again"), Thread: "http-nio-8080-Acceptor"})
				tap.Offer(nil, &Entry{Level: "INFO", At: at, Line: fmt.Appendf(nil, "line %d ä\xff \"quoted\"\n\tat frame?password=hunter2", i)})
			}
			// A storm of some seconds, until three summaries have told of it.
			storm, tick := 0, time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for ; storm < 100000 || s.Counts().Summaries < 3; storm++ {
				if storm%1000 == 0 {
					<-tick.C
				}
				g := tap.Gate("WARN", "Executor rejected socket [*]")
				if g.Pass() {
					tap.Offer(g, &Entry{Level: "WARN", Event: "executor_rejected", Pattern: "Executor rejected socket [*]", At: at, Line: []byte("Executor rejected socket")})
				}
			}
			tap.Close() // tells what was suppressed
			until(t, "all sent", func() bool { c := balanced(t, s); return c.Queued == 0 && s.Idle() })
			c := balanced(t, s)
			if c.Selected != float64(2*each+storm) || c.Summaries < 3 || c.Dropped != 0 {
				t.Errorf("%+v", c)
			}
			var found []map[string]string
			want := int(c.Shipped + c.Summaries)
			until(t, fmt.Sprint(want, " found again"), func() bool {
				lines, err := v.Query(fmt.Sprintf(`{target=%q} | limit 100000`, target))
				if err != nil {
					t.Fatal(err)
				}
				found = nil
				for _, line := range lines {
					m := map[string]string{}
					if err := json.Unmarshal(line, &m); err != nil {
						t.Fatal(err)
					}
					found = append(found, m)
				}
				return len(found) >= want
			})
			same, numbers, told, rejected, summaries := 0, map[string]bool{}, 0.0, 0, 0.0
			for _, m := range found {
				text := m["_msg"]
				switch {
				case text == "the same again":
					same++
					if m["thread"] != "http-nio-8080-Acceptor" || m["file"] != "catalina.out" || m["event"] != "too_many_open_files" || m["level"] != "WARN" || m["host"] != "h" {
						t.Errorf("%v", m)
					}
				case strings.HasPrefix(text, "line "):
					numbers[text] = true
					if !strings.HasSuffix(text, " ä\ufffd \"quoted\"\n\tat frame?password=*****") {
						t.Errorf("%q", text)
					}
				case text == "Executor rejected socket":
					rejected++
				case strings.HasPrefix(text, "executor_rejected: "):
					var n float64
					fmt.Sscanf(strings.ReplaceAll(strings.TrimPrefix(text, "executor_rejected: "), ",", ""), "%g more", &n)
					told += n
					summaries++
				default:
					t.Errorf("%q was not sent", text)
				}
			}
			if len(found) != want || same != each || len(numbers) != each {
				t.Errorf("found %d of %d, %d of %d equal ones, %d of %d different ones", len(found), want, same, each, len(numbers), each)
			}
			if told != c.Suppressed || float64(rejected)+told != float64(storm) || summaries != c.Summaries {
				t.Errorf("of %d rejections %d and %v summaries that tell of %v; suppressed are %v, summaries %v", storm, rejected, summaries, told, c.Suppressed, c.Summaries)
			}
			t.Logf("%s: %.0f selected, %.0f shipped, %.0f suppressed, %.0f summaries: all found again", encoding, c.Selected, c.Shipped, c.Suppressed, c.Summaries)
		})
	}
}
