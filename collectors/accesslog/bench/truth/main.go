// Command truth holds a report against what the generator knows to be in its
// log: truth TRUTH.json REPORT.json. A fast reader that counts wrong is no
// reader.
package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
)

func main() {
	if err := check(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "truth:", err)
		os.Exit(1)
	}
	fmt.Println("exact against the generator's truth: requests, statuses, methods, bytes, durations, refused lines")
}

func check(truthFile, reportFile string) error {
	var truth struct {
		Lines         int64                       `json:"lines"`
		WellFormed    int64                       `json:"well_formed"`
		NoRequest     int64                       `json:"no_request_line"`
		Garbage       int64                       `json:"garbage"`
		ByMethodClass map[string]map[string]int64 `json:"by_method_and_status_class"`
		ByStatus      map[string]int64            `json:"by_status"`
		Bytes         int64                       `json:"response_bytes_sum"`
		SumMicros     int64                       `json:"latency_sum_us"`
	}
	var report struct {
		Lines    int64            `json:"lines"`
		Requests int64            `json:"requests"`
		Refused  map[string]int64 `json:"refused"`
		ByStatus map[string]int64 `json:"by_status"`
		ByMethod map[string]int64 `json:"by_method"`
		Nameless int64            `json:"without_request"`
		Bytes    int64            `json:"response_bytes"`
		Duration struct {
			Sum float64 `json:"sum"`
		} `json:"duration_seconds"`
	}
	for file, v := range map[string]any{truthFile: &truth, reportFile: &report} {
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(b, v); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	refused := int64(0)
	for _, n := range report.Refused {
		refused += n
	}
	equal := func(what string, got, want int64) error {
		if got != want {
			return fmt.Errorf("%s: %d, the truth is %d", what, got, want)
		}
		return nil
	}
	for _, err := range []error{
		equal("lines", report.Lines, truth.Lines),
		equal("requests", report.Requests, truth.WellFormed+truth.NoRequest),
		equal("lines without a request", report.Nameless, truth.NoRequest),
		equal("refused", refused, truth.Garbage),
		equal("response bytes", report.Bytes, truth.Bytes),
		equal("method other", report.ByMethod["other"], truth.NoRequest),
	} {
		if err != nil {
			return err
		}
	}
	for status, n := range truth.ByStatus {
		if status == "400" { // what the generator's "-" requests were answered with
			n += truth.NoRequest
		}
		if err := equal("status "+status, report.ByStatus[status], n); err != nil {
			return err
		}
	}
	for method, classes := range truth.ByMethodClass {
		n := int64(0)
		for _, c := range classes {
			n += c
		}
		if err := equal("method "+method, report.ByMethod[method], n); err != nil {
			return err
		}
	}
	// The "-" requests took up to 300 µs each, which the truth leaves out.
	over := report.Duration.Sum - float64(truth.SumMicros)/1e6
	if most := float64(truth.NoRequest) * 300e-6; over < -1e-3 || over > most+1e-3 || math.IsNaN(over) {
		return fmt.Errorf("durations: %v s, the truth is %v s and at most %v s more", report.Duration.Sum, float64(truth.SumMicros)/1e6, most)
	}
	return nil
}
