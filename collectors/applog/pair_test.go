package applog

import (
	"fmt"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

func infoLine(i int) []byte {
	return fmt.Appendf(nil, "30-Jun-2024 12:00:00.%03d INFO [main] a.b.C.d number %d", i%1000, i)
}

// TestPair: catalina.out has every record, catalina.DATE.log lacks some; both are
// written at once, one ahead of the other.
func TestPair(t *testing.T) {
	a, b := metric.NewSet(), metric.NewSet()
	primary, copied := New(a, Config{Role: Primary}), New(b, Config{Role: Copy})
	p := NewPair(primary, copied, false)
	now := time.Unix(0, 0)
	dropped := func() float64 {
		v, _ := a.Counter(Dropped).Value()
		return v
	}
	tick := func(seconds int, atEnd bool) {
		for range seconds {
			now = now.Add(time.Second)
			p.Tick(now, atEnd)
		}
	}
	// The sidecar came late: 3 records of difference are from before.
	for i := range 3 {
		primary.Observe(infoLine(i))
	}
	tick(7, true)
	for i := range 1000 {
		primary.Observe(infoLine(i))
		if i%10 != 0 && i < 990 {
			copied.Observe(infoLine(i))
		}
		if i%100 == 0 {
			tick(1, true)
		}
	}
	if dropped() != 0 {
		t.Fatalf("%v dropped while both are written", dropped())
	}
	tick(5, true)
	for i := 990; i < 1000; i++ { // the handler was late, not lossy
		copied.Observe(infoLine(i))
	}
	tick(30, false)
	if dropped() != 0 {
		t.Fatalf("%v dropped while a follower is behind", dropped())
	}
	tick(4, true)
	if dropped() != 0 {
		t.Fatalf("%v dropped before 5 quiet seconds", dropped())
	}
	tick(4, true)
	if dropped() != 99 {
		t.Fatalf("%v dropped, want 99", dropped())
	}
	tick(20, true)
	if dropped() != 99 {
		t.Errorf("%v dropped after more quiet", dropped())
	}
	// A restart keeps the base.
	data, err := primary.Save()
	if err != nil {
		t.Fatal(err)
	}
	data2, err := copied.Save()
	if err != nil {
		t.Fatal(err)
	}
	a, b = metric.NewSet(), metric.NewSet()
	primary, copied = New(a, Config{Role: Primary}), New(b, Config{Role: Copy})
	if err := primary.Load(data); err != nil {
		t.Fatal(err)
	}
	if err := copied.Load(data2); err != nil {
		t.Fatal(err)
	}
	p = NewPair(primary, copied, false)
	primary.Observe(infoLine(1))
	tick(10, true)
	if dropped() != 100 {
		t.Errorf("%v dropped after a restart and one more, want 100", dropped())
	}
}

// TestOneCount: what two files carry is counted once, their bytes twice.
func TestOneCount(t *testing.T) {
	text := stormText(64)
	g := metric.NewGathering()
	for _, role := range []string{Primary, Copy} {
		set := metric.ForTarget("tomcat-8080")
		o := New(set, Config{Role: role})
		feed(o, text, 0)
		o.Gap()
		g.Add(set)
	}
	snap := g.Snapshot(time.Time{})
	for name, want := range map[string]float64{
		"applog_bytes_total": 2 * float64(len(text)), "applog_records_total": 64, "applog_events_total": 60, "applog_exceptions_total": 120,
		"applog_logger_records_total": 64, "applog_event_bytes_total": float64(len(text)) - 4*97,
	} {
		var sum float64
		for _, m := range snap.Family(name).GetMetric() {
			sum += m.Counter.GetValue()
		}
		if name == "applog_event_bytes_total" {
			if sum > float64(len(text)) || sum < 0.95*float64(len(text)) {
				t.Errorf("%s is %v of %d bytes", name, sum, len(text))
			}
			continue
		}
		if sum != want {
			t.Errorf("%s is %v, want %v", name, sum, want)
		}
	}
}
