package applog

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jvm-sidecar/sidecar/internal/metric"
)

// The cases of ../shared/cases that are about application logs, with inputs of
// our own of the same property.

// Colours (case 15): a console appender writes to a file, one record begins with an
// escape, one message has brackets that only look like a colour.
func TestColours(t *testing.T) {
	const e = "\x1b"
	r := NewReport(DefaultConfig())
	feed(r, []byte("2024-06-30 12:00:00.001 "+e+"[31mERROR"+e+"[0;39m ["+e+"[36mmain"+e+"[m] a.B : boom\n"+
		e+"[2m2024-06-30 12:00:00.002"+e+"[0m "+e+"[33m WARN"+e+"[0m [main] a.B : hm\n"+
		"2024-06-30 12:00:00.003 "+e+"[32m INFO"+e+"[0;39m [main] a.B : array[31m] is not a colour\n"+
		"2024-06-30 12:00:00.004 "+e+"[32m INFO"+e+"[0;39m [main] a.B : "+e+"]8;;http://x"+e+"\\link"+e+"]8;;"+e+"\\\n"), 0)
	got := r.Result()
	if want := (map[string]uint64{"ERROR": 1, "WARN": 1, "INFO": 2}); !maps.Equal(got.ByLevel, want) || got.RawLines != 0 {
		t.Errorf("levels %v, raw %q", got.ByLevel, got.RawSamples)
	}
	if got.Loggers["a.B"] != 4 {
		t.Errorf("loggers %v", got.Loggers)
	}
	shown := fmt.Sprint(r.o.Recent())
	if strings.Contains(shown, e) || !strings.Contains(shown, "array[31m]") || !strings.Contains(shown, ": link") {
		t.Errorf("shown: %q", shown)
	}
}

// One event with everything (case 30): a message of three lines of which one begins
// with a date, a suppressed exception, two causes, frames left out.
func TestOneNestedTrace(t *testing.T) {
	got := read(`2024-06-30 12:00:00,100 ERROR [http-nio-8080-exec-7] c.e.shop.Cart - checkout failed
com.example.shop.CheckoutException: cannot price order 77:
 line 1: sku=A1
2024-06-30 is not a valid delivery date
	at com.example.shop.Cart.price(Cart.java:10) ~[classes!/:?]
	Suppressed: java.io.IOException: close failed
		at com.example.shop.Conn.close(Conn.java:5)
		Caused by: java.lang.Error: not the root
		... 1 common frames omitted
Caused by: java.sql.SQLException: bad value
	at com.example.shop.Db.q(Db.java:9)
	... 42 common frames omitted
Caused by: java.net.SocketTimeoutException: Read timed out
	at java.base/java.net.Socket.read(Socket.java:1)
	... 43 more

2024-06-30 12:00:00,101 INFO  [http-nio-8080-exec-8] c.e.shop.Cart - ok
2024-06-30 12:00:00,101 ERROR [http-nio-8080-exec-9] c.e.shop.Cart - second
java.lang.NullPointerException: null
	at com.example.shop.Cart.add(Cart.java:3)
`)
	if got.Records != 3 || got.ByLevel["ERROR"] != 2 || got.ByLevel["INFO"] != 1 || got.RawLines != 0 {
		t.Errorf("%d records %v, raw %q", got.Records, got.ByLevel, got.RawSamples)
	}
	if want := (map[string]uint64{"com.example.shop.CheckoutException": 1, "java.lang.NullPointerException": 1}); !maps.Equal(got.Thrown, want) {
		t.Errorf("thrown %v", got.Thrown)
	}
	if want := (map[string]uint64{"java.net.SocketTimeoutException": 1, "java.lang.NullPointerException": 1}); !maps.Equal(got.Exceptions, want) {
		t.Errorf("root causes %v", got.Exceptions)
	}
	var bytes uint64
	for _, p := range got.Patterns {
		bytes += p.Bytes
	}
	if bytes != got.Bytes {
		t.Errorf("the records have %d of %d bytes", bytes, got.Bytes)
	}
}

// Localised months and levels (case 31), one of them in Latin-1, and a month of
// no language.
func TestLocales(t *testing.T) {
	text := `05-Jan.-2024 15:04:05.123 SCHWERWIEGEND [main] a.b.C.d x
05-März-2024 15:04:05.123 WARNUNG [main] a.b.C.d x
05-Mai-2024 15:04:05.123 INFORMATION [main] a.b.C.d x
05-févr.-2024 15:04:05.123 GRAVE [main] a.b.C.d x
05-août-2024 15:04:05.123 AVERTISSEMENT [main] a.b.C.d x
05-juil.-2024 15:04:05.123 INFOS [main] a.b.C.d x
05-sept-2024 15:04:05.123 ADVERTENCIA [main] a.b.C.d x
05-1月-2024 15:04:05.123 严重 [main] a.b.C.d x
05-12月-2024 15:04:05.123 警告 [main] a.b.C.d x
05-12月-2024 15:04:05.123 信息 [main] a.b.C.d x
05-янв.-2024 15:04:05.123 SEVERE [main] a.b.C.d x
` + "05-M\xe4rz-2024 15:04:06.123 SCHWERWIEGEND [main] a.b.C.d x\n" +
		"05-Smarch-2024 15:04:07.123 SEVERE [main] a.b.C.d x\n"
	r := NewReport(DefaultConfig())
	o := r.o
	var got []string
	for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		o.Observe([]byte(line))
		got = append(got, strings.TrimSuffix(clockText(o.rec.at), " 15:04:05.123"))
	}
	want := []string{"2024-01-05", "2024-03-05", "2024-05-05", "2024-02-05", "2024-08-05", "2024-07-05", "2024-09-05", "2024-01-05", "2024-12-05", "2024-12-05", "2024-01-05", "2024-03-05 15:04:06.123", ""}
	if strings.Join(got, ",") != strings.Join(want, ",") {
		t.Errorf("times\n got %v\nwant %v", got, want)
	}
	if levels := r.Result().ByLevel; levels["SEVERE"] != 6 || levels["WARNING"] != 4 || levels["INFO"] != 3 {
		t.Errorf("levels %v", levels)
	}
}

// SimpleFormatter's dates in other languages, with the narrow space of JDK 20.
func TestSimpleLocales(t *testing.T) {
	for _, c := range []struct{ head, level, at string }{
		{"Nov 30, 2026 11:59:36 AM a.b.C d\nINFO: x\n", "INFO", "2026-11-30 11:59:36.000"},
		{"Nov 30, 2026 12:00:36 AM a.b.C d\nINFO: x\n", "INFO", "2026-11-30 00:00:36.000"},
		{"Nov 30, 2026 1:59:36\u202fPM a.b.C d\nINFO: x\n", "INFO", "2026-11-30 13:59:36.000"},
		{"Nov. 30, 2026 1:59:36 PM a.b.C d\nWARNUNG: x\n", "WARNING", "2026-11-30 13:59:36.000"},
		{"nov. 30, 2026 1:59:36 PM a.b.C d\nAVERTISSEMENT: x\n", "WARNING", "2026-11-30 13:59:36.000"},
		{"nov. 30, 2026 1:59:36 PM a.b.C d\nINFOS : x\n", "INFO", "2026-11-30 13:59:36.000"},
		{"11月 30, 2026 1:59:36 午後 a.b.C d\n警告: x\n", "WARNING", "2026-11-30 13:59:36.000"},
		{"11月 30, 2026 1:59:36 上午 a.b.C d\n严重: x\n", "SEVERE", "2026-11-30 01:59:36.000"},
		{"nov 30, 2026 1:59:36 P. M. a.b.C d\nGRAVE: x\n", "SEVERE", "2026-11-30 13:59:36.000"},
		{"30.11.2026 14:00:37 a.b.C d\nSCHWERWIEGEND: x\n", "SEVERE", ""}, // JDK 6: medium date
		{"2026/11/30 14:00:37 a.b.C d\n情報: x\n", "INFO", ""},
	} {
		r := NewReport(DefaultConfig())
		feed(r, []byte(c.head), 0)
		at := clockText(r.o.rec.at)
		got := r.Result()
		if got.ByLevel[c.level] != 1 || got.Records != 1 || got.RawLines != 0 || at != c.at || got.Loggers["a.b.C.d"] != 1 {
			t.Errorf("%q: %v at %q, %d raw, loggers %v", c.head, got.ByLevel, at, got.RawLines, got.Loggers)
		}
	}
}

// The accept loop that logs one error without end (case 50), and one lone
// rejection behind it, in English and without a trace.
func TestLogStorm(t *testing.T) {
	var b bytes.Buffer
	for i := range 20000 {
		fmt.Fprintf(&b, "30-Jun-2024 12:00:%02d.%03d SEVERE [http-nio-8080-Acceptor] org.apache.tomcat.util.net.Acceptor.run Socket accept failed\n\tjava.io.IOException: Too many open files\n\t\tat java.base/sun.nio.ch.Net.accept(Native Method)\n", i/4000, i%1000)
	}
	b.WriteString("30-Jun-2024 12:00:50.000 WARNING [http-nio-8080-exec-1] org.apache.tomcat.util.net.X Executor rejected socket [7] for processing\n")
	for _, block := range []int{0, 1 << 18, 333} {
		r := NewReport(DefaultConfig())
		feed(r, b.Bytes(), block)
		got := r.Result()
		if got.ByLevel["SEVERE"] != 20000 || got.ByLevel["WARNING"] != 1 || got.Exceptions["java.io.IOException"] != 20000 ||
			got.Events["too_many_open_files"] != 20000 || got.Events["executor_rejected"] != 1 || len(got.Events) != 2 {
			t.Errorf("levels %v exceptions %v events %v", got.ByLevel, got.Exceptions, got.Events)
		}
		if got.EventPorts["too_many_open_files"]["8080"] != 20000 {
			t.Errorf("ports %v", got.EventPorts)
		}
	}
}

// A lone rejection is counted at its own line: nothing needs to come after it.
func TestFirstDecidingLine(t *testing.T) {
	o := New(metric.NewSet(), DefaultConfig())
	rejected := func() float64 {
		v, _ := o.set.Counter(EventsTotal, "executor_rejected", "7020").Value()
		return v
	}
	// Not in English: the exception decides.
	o.Observe([]byte("30-Jun-2024 12:00:00.000 AVERTISSEMENT [http-nio-7020-Poller] org.apache.tomcat.util.net.AbstractEndpoint.processSocket L'exécuteur a rejeté le traitement du socket [x]"))
	if rejected() != 0 {
		t.Error("counted by what?")
	}
	if !o.Observe([]byte("\tjava.util.concurrent.RejectedExecutionException: La file d'attente est pleine")) {
		t.Error("the record is not open")
	}
	if rejected() != 1 {
		t.Error("not counted at the exception's line")
	}
	o.Observe([]byte("30-Jun-2024 12:00:00.000 WARNING [http-nio-7020-Poller] org.apache.tomcat.util.net.AbstractEndpoint.processSocket Executor rejected socket [x] for processing"))
	if rejected() != 2 {
		t.Error("not counted at the head")
	}
	o.Observe([]byte("\tjava.util.concurrent.RejectedExecutionException: Queue capacity is full"))
	o.Idle(time.Time{})
	if o.Observe([]byte("\t\tat late.Frame.x(Frame.java:1)")) {
		t.Error("a late frame of a told record needs no further Idle")
	}
	o.Gap()
	if v, _ := o.raw.Value(); rejected() != 2 || v != 0 {
		t.Errorf("%v rejections, %v raw lines", rejected(), v)
	}
	if v, _ := o.set.Counter(Exceptions, rejectedClass, "root").Value(); v != 2 {
		t.Errorf("%v root causes", v)
	}
}

const rejectedClass = "java.util.concurrent.RejectedExecutionException"

// Words that another record quotes are no event.
func TestDecoys(t *testing.T) {
	got := read(`30-Jun-2024 12:00:00.000 WARNING [main] org.apache.tomcat.util.net.Acceptor.run retry after earlier message 'Executor rejected socket' (quoted)
30-Jun-2024 12:00:00.000 WARNING [main] com.acme.A.b Executor rejected socket [1] for processing
30-Jun-2024 12:00:00.000 INFO [main] com.acme.A.b java.util.concurrent.RejectedExecutionException
	java.lang.Throwable
30-Jun-2024 12:00:00.000 SEVERE [main] com.acme.A.b Task failed
	java.util.concurrent.RejectedExecutionException: mine
30-Jun-2024 12:00:00.000 SEVERE [main] org.apache.tomcat.util.net.Acceptor.run Socket accept failed
	java.io.IOException: Broken pipe
Executor rejected socket [1] for processing
`)
	if len(got.Events) != 0 {
		t.Errorf("events %v", got.Events)
	}
}

// storm is a log of random records, some of them the same over and over, with
// raw lines between.
func randomLog(r *rand.Rand, records int) []byte {
	var b bytes.Buffer
	heads := []string{
		"30-Jun-2024 12:00:%02d.%03d WARNING [http-nio-8080-Poller] org.apache.tomcat.util.net.AbstractEndpoint.processSocket Executor rejected socket [a:[b] %d] for processing\n",
		"30-Jun-2024 12:00:%02d.%03d WARNING [http-nio-8080-Poller] org.apache.tomcat.util.net.AbstractEndpoint.processSocket Executor rejected socket [a:[b] %d] for processing now\n",
		"30-Jun-2024 12:00:%02d.%03d WARNING [http-nio-8080-Poller] org.apache.tomcat.util.net.AbstractEndpoint.processSocket L'ex\xc3\xa9cuteur a rejet\xc3\xa9 [%d]\n",
		"30-Jun-2024 12:00:%02d.%03d INFO [http-nio-8080-exec-1] a.b.C.d order '%d' placed\n",
		"30-Jun-2024 12:00:%02d.%03d SEVERE [http-nio-8081-exec-1] org.apache.coyote.http11.Http11Processor.service failed @%x\n",
		"Jun 30, 2024 12:00:%02d PM a.b.C d%.0d\nWARNING: it is %d\n",
		"2024-06-30 12:00:%02d,%03d ERROR [http-nio-8080-exec-7] c.e.shop.Cart - checkout %d failed\n",
	}
	thrown := []string{"", "", "\tjava.util.concurrent.RejectedExecutionException: Queue capacity is full\n", "\tjava.util.concurrent.RejectedExecutionException: Task 7 rejected from x\n",
		"java.lang.OutOfMemoryError: Java heap space\n", " java.io.IOException: Too many open files\n", "com.acme.Bad: two\nlines\n", "\tjava.lang.IllegalArgumentException: x\n"}
	bodies := []string{"", "\t\tat a.B.c(B.java:1)\n\t\tat a.B.d(B.java:2)\n", "\t\tat a.B.c(B.java:1)\n\t\tat a.B.d(B.java:2)\n\t\tat a.B.e(B.java:3)\n",
		"\tat org.apache.coyote.http11.Http11InputBuffer.fill(X.java:1)\nCaused by: java.io.EOFException: x\n\tat a.B.c(B.java:1)\n\t... 3 more\n\n",
		"\t\tat a.B.c(B.java:1)\n\tCaused by: java.net.SocketTimeoutException: Read timed out\n\t\t... 31 more\n\n"}
	for range records {
		b.WriteString(fmt.Sprintf(heads[r.IntN(len(heads))], r.IntN(60), r.IntN(1000), r.IntN(100000)))
		b.WriteString(thrown[r.IntN(len(thrown))])
		b.WriteString(bodies[r.IntN(len(bodies))])
		switch r.IntN(12) {
		case 0:
			b.WriteString("raw line\n")
		case 1:
			b.WriteString("Exception in thread \"http-nio-8080-Poller\" java.lang.OutOfMemoryError: Java heap space\n\tat a.B.c(B.java:1)\n")
		case 2:
			b.WriteString("\n")
		case 3:
			b.WriteString("\r\n")
		}
	}
	return b.Bytes()
}

// figures is the whole of what an observer has counted, to be compared.
func figures(o *Observer) string {
	g := metric.NewGathering()
	g.Add(o.set)
	var b strings.Builder
	fmt.Fprintln(&b, o.records, o.seen)
	for _, f := range g.Snapshot(time.Time{}).Families {
		for _, m := range f.Metric {
			v := m.Counter.GetValue() + m.Gauge.GetValue()
			if v == 0 {
				continue
			}
			b.WriteString(f.GetName())
			for _, l := range m.Label {
				b.WriteString(" " + l.GetName() + "=" + l.GetValue())
			}
			b.WriteString(" " + strconv.FormatFloat(v, 'g', -1, 64) + "\n")
		}
	}
	return b.String()
}

// TestCuts: blocks cut anywhere, and a restart after any line, change no figure.
func TestCuts(t *testing.T) {
	for s := range uint64(30) {
		text := randomLog(rand.New(rand.NewPCG(s, 1)), 60)
		whole := New(metric.NewSet(), DefaultConfig())
		feed(whole, bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), 0)
		whole.Gap()
		want := figures(whole)
		for _, size := range []int{100, 1000, 1 << 20} {
			o := New(metric.NewSet(), DefaultConfig())
			feed(o, bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), size)
			o.Gap()
			if got := figures(o); got != want {
				t.Fatalf("seed %d, blocks of %d:\n got %s\nwant %s", s, size, got, want)
			}
		}
		// A restart after every third line.
		o := New(metric.NewSet(), DefaultConfig())
		for i, line := range bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) {
			o.Observe(bytes.TrimSuffix(line, []byte("\r")))
			if i%3 != int(s%3) {
				continue
			}
			data, err := o.Save()
			if err != nil {
				t.Fatal(err)
			}
			o = New(metric.NewSet(), DefaultConfig())
			if err := o.Load(data); err != nil {
				t.Fatal(err)
			}
		}
		o.Gap()
		if got := figures(o); got != want {
			t.Fatalf("seed %d, restarts:\n got %s\nwant %s", s, got, want)
		}
	}
}
