//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/jvm-sidecar/sidecar/internal/lab"
)

const (
	// settle is how long what stands beside a server runs before it is held
	// against it: a start is paid once, and a load run is long.
	settle = 10 * time.Second
	// leg is one half of a pair.
	leg = time.Second
	// span is how long the CPU of both is compared for one figure, of which there
	// are several.
	span  = 10 * time.Second
	spans = 6
)

// tablePairs loads one Tomcat with the sidecar beside it, and another that runs Prometheus' Java agent. What is beside is scraped each
// second.
//
// The load never ends meanwhile, since each new start of wrk finds another pace.
// Whether something is beside changes under it: without, with, with, without,
// a second each, so that a machine that gets slower or faster takes nothing from
// either. The sidecar is held (SIGSTOP) where it is to be absent; what it missed
// it has to catch up on in its next leg, so that this is no gift to it. The agent
// can't be taken out of its JVM, and is scraped or not. Each Tomcat is held
// against itself: two that are alike differ by what their compilers happened to
// do. Requests are the lines of the access log.
func tablePairs(dir string, rounds int) error {
	program, err := lab.Build(dir, "./cmd/sidecar")
	if err != nil {
		return err
	}
	agentPort, err := lab.FreePort()
	if err != nil {
		return err
	}
	option, err := lab.JMXAgent(dir, agentPort)
	if err != nil {
		return err
	}
	var ours, theirs pairing
	shares := map[string][]float64{} // by engine
	err = underLoad(dir, 4*leg*time.Duration(rounds)+2*(settle+spans*span), nil, func(plain *lab.Server) error {
		off, err := startBeside(dir, program, plain.PID, "off")
		if err != nil {
			return err
		}
		scraper := scrapeEachSecond(off.addr)
		shares["off"], err = cpuShares(off, plain)
		scraper.stop()
		off.Stop()
		if err != nil {
			return err
		}
		b, err := startBeside(dir, program, plain.PID, "on")
		if err != nil {
			return err
		}
		defer b.Stop()
		defer unix.Kill(b.PID, unix.SIGCONT) // or it could not be stopped
		scraper = scrapeEachSecond(b.addr)
		defer scraper.stop()
		if shares["on"], err = cpuShares(b, plain); err != nil {
			return err
		}
		ours, err = pair(plain, rounds, func(with bool) {
			scraper.on.Store(with)
			if with {
				unix.Kill(b.PID, unix.SIGCONT)
			} else {
				unix.Kill(b.PID, unix.SIGSTOP)
			}
		})
		return err
	})
	if err != nil {
		return err
	}
	agentRounds := max(rounds/3, 2) // its bound is no bar, its mean is
	err = underLoad(dir, 4*leg*time.Duration(agentRounds)+settle, []string{option}, func(agent *lab.Server) error {
		scraper := scrapeEachSecond(fmt.Sprintf("127.0.0.1:%d", agentPort))
		defer scraper.stop()
		time.Sleep(settle)
		theirs, err = pair(agent, agentRounds, func(with bool) { scraper.on.Store(with) })
		return err
	})
	if err != nil {
		return err
	}
	head(fmt.Sprintf("Tomcat at saturation (wrk, 64 connections), %d pairs of %v with the sidecar, %d with the agent", 2*rounds, leg, 2*agentRounds))
	for _, engine := range []string{"off", "on"} {
		share := shares[engine]
		row(fmt.Sprintf("the sidecar's CPU, engine %s, median of %d spans of %v", engine, len(share), span),
			fmt.Sprintf("%.2f %% of Tomcat's (%.2f to %.2f)", median(share), slices.Min(share), slices.Max(share)), "2 %", median(share) <= 2)
	}
	mean, low := lowerBound(ours.ratios)
	theirMean, theirLow := lowerBound(theirs.ratios)
	row("throughput with the sidecar, engine on, of that without", fmt.Sprintf("%.3f, at least %.3f (95 %%), of %.0f requests a second", mean, low, ours.perSecond), "at least 0.97", low >= 0.97)
	row("throughput with jmx_prometheus_javaagent scraped, of that not", fmt.Sprintf("%.3f, at least %.3f (95 %%), of %.0f requests a second", theirMean, theirLow, theirs.perSecond), "no better than with the sidecar", mean >= theirLow)
	return nil
}

// cpuShares is the sidecar's CPU in percent of the server's, once it has settled.
func cpuShares(b *beside, server *lab.Server) (shares []float64, err error) {
	time.Sleep(settle)
	for range spans {
		own0, err0 := cpuOf(b.PID)
		his0, err1 := cpuOf(server.PID)
		time.Sleep(span)
		own1, err2 := cpuOf(b.PID)
		his1, err3 := cpuOf(server.PID)
		if err := errors.Join(err0, err1, err2, err3); err != nil {
			return nil, err
		}
		own, his := (own1 - own0).Seconds(), (his1 - his0).Seconds()
		shares = append(shares, own/his*100)
		fmt.Fprintf(os.Stderr, "the sidecar %.1f ms a second, Tomcat %.0f\n", own/span.Seconds()*1000, his/span.Seconds()*1000)
	}
	return shares, nil
}

// underLoad has a Tomcat of its own that is saturated for some time, once its
// code is compiled, and meanwhile does something beside it.
func underLoad(dir string, length time.Duration, options []string, beside func(*lab.Server) error) error {
	server, err := tomcat(dir, options...)
	if err != nil {
		return err
	}
	defer server.Stop()
	url := server.URL("/slow?op=size&n=1000")
	if _, err := lab.Wrk(url, 64, 30*time.Second); err != nil {
		return err
	}
	wrk, err := lab.StartWrk(filepath.Join(dir, "wrk.out"), url, 64, length+time.Minute)
	if err != nil {
		return err
	}
	defer wrk.Stop()
	return beside(server)
}

// pairing is the ratios of with to without, of a round each, and the requests a
// second without.
type pairing struct {
	ratios    []float64
	perSecond float64
}

// pair counts requests in rounds of four legs: without, with, with, without.
func pair(server *lab.Server, rounds int, beside func(with bool)) (p pairing, err error) {
	log, err := newestLog(server)
	if err != nil {
		return p, err
	}
	defer log.Close()
	if _, err := log.Seek(0, io.SeekEnd); err != nil {
		return p, err
	}
	buf := make([]byte, 1<<20)
	lines := func() (n float64, err error) {
		for {
			got, err := log.Read(buf)
			n += float64(bytes.Count(buf[:got], []byte{'\n'}))
			if err == io.EOF {
				return n, nil
			}
			if err != nil {
				return n, err
			}
		}
	}
	var without float64
	for i := range rounds {
		var n [4]float64
		for j, with := range []bool{false, true, true, false} {
			beside(with)
			if _, err := lines(); err != nil {
				return p, err
			}
			began := time.Now()
			time.Sleep(leg)
			got, err := lines()
			if err != nil {
				return p, err
			}
			if got == 0 {
				return p, errors.New("no request in a second: the access log was rotated, or the load is over")
			}
			n[j] = got / time.Since(began).Seconds()
		}
		p.ratios = append(p.ratios, math.Sqrt(n[1]*n[2]/n[0]/n[3]))
		without += (n[0] + n[3]) / 2
		if (i+1)%20 == 0 {
			mean, low := lowerBound(p.ratios)
			fmt.Fprintf(os.Stderr, "%d of %d rounds: with, of without: %.3f, at least %.3f\n", i+1, rounds, mean, low)
		}
	}
	beside(true)
	p.perSecond = without / float64(rounds)
	return p, nil
}

func newestLog(server *lab.Server) (*os.File, error) {
	names, err := filepath.Glob(filepath.Join(server.LogDir, "*access_log*"))
	if err == nil && len(names) == 0 {
		err = errors.New("no access log in " + server.LogDir)
	}
	if err != nil {
		return nil, err
	}
	return os.Open(slices.Max(names)) // they end in the date
}

// scraper stands for a Prometheus, while it is on.
type scraper struct {
	on   atomic.Bool
	stop func()
}

func scrapeEachSecond(addr string) *scraper {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	s := &scraper{stop: func() { cancel(); <-done }}
	s.on.Store(true)
	go func() {
		defer close(done)
		t := time.NewTicker(time.Second)
		defer t.Stop()
		for {
			if s.on.Load() {
				scrape(addr)
			}
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
		}
	}()
	return s
}

// lowerBound is the geometric mean of ratios and the lower end of its two-sided
// 95 % interval (Student's t).
func lowerBound(ratios []float64) (mean, low float64) {
	n := float64(len(ratios))
	var sum, squares float64
	for _, r := range ratios {
		sum += math.Log(r)
	}
	for _, r := range ratios {
		squares += math.Pow(math.Log(r)-sum/n, 2)
	}
	if n < 2 {
		return math.Exp(sum / n), 0
	}
	// Student's t by Cornish and Fisher's expansion about the normal: from ten
	// rounds on it is right to two in a thousand.
	const z = 1.95996
	t := z + (z*z*z+z)/(4*(n-1)) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*(n-1)*(n-1))
	return math.Exp(sum / n), math.Exp(sum/n - t*math.Sqrt(squares/(n-1)/n))
}
