package ship

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// kind is what is to be done after a push.
type kind uint8

const (
	sent   kind = iota
	again       // later, as it is
	split       // in parts
	reject      // not at all
)

type result struct {
	kind   kind
	reason string // of the failure, a value of the label
	detail string
	after  time.Duration // the server's wish
	bytes  int
}

// A sender pushes lines once and says what became of them. Ours is pusher. The
// Client of loki-client-go stands behind the same interface in the tests, which
// show what it loses; in the program it would be a choice that nobody should make,
// and 1.1 MB of the binary.
type sender interface {
	push(ctx context.Context, part []line) result
}

// pusher is one Loki, as the settings describe it.
type pusher struct {
	cfg    *Config
	client *http.Client
}

func (p *pusher) push(ctx context.Context, part []line) result {
	cfg := p.cfg
	body, contentType, err := encode(part, cfg.Encoding == "json")
	if err != nil {
		return result{kind: split, reason: "status_4xx", detail: "BUG: " + err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, cfg.URL, bytes.NewReader(body))
	if err != nil {
		return result{kind: reject, reason: "connection", detail: err.Error()}
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("User-Agent", "jvm-sidecar")
	if cfg.Tenant != "" {
		req.Header.Set("X-Scope-OrgID", cfg.Tenant)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return result{kind: again, reason: reasonOf(err), detail: err.Error()}
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 == 2 {
		return result{kind: sent, bytes: len(body)} // whatever it says, and however slowly
	}
	// The status is known; the text is only for the log. A body that drips is
	// not waited for beyond the time-out, and a long one is not read.
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 2048))
	detail := fmt.Sprintf("%s: %s", resp.Status, strings.TrimSpace(clean(string(text), 512)))
	switch code := resp.StatusCode; {
	case code == http.StatusTooManyRequests:
		return result{kind: again, reason: "throttled", detail: detail, after: retryAfter(resp.Header.Get("Retry-After"))}
	case code/100 == 5:
		return result{kind: again, reason: "status_5xx", detail: detail, after: retryAfter(resp.Header.Get("Retry-After"))}
	case code == http.StatusRequestTimeout:
		return result{kind: again, reason: "status_4xx", detail: detail}
	case code == http.StatusBadRequest, code == http.StatusRequestEntityTooLarge, code == http.StatusUnprocessableEntity:
		return result{kind: split, reason: "status_4xx", detail: detail}
	case code/100 == 3:
		return result{kind: reject, reason: "status_3xx", detail: detail}
	}
	return result{kind: reject, reason: "status_4xx", detail: detail}
}

// retryAfter reads the header: seconds or a date.
func retryAfter(h string) time.Duration {
	if n, err := strconv.ParseFloat(h, 64); err == nil && n > 0 {
		return time.Duration(min(n, 86400) * 1e9)
	}
	if t, err := http.ParseTime(h); err == nil {
		return max(0, time.Until(t))
	}
	return 0
}

// reasonOf sorts the ways in which a push gets no answer.
func reasonOf(err error) string {
	var (
		dns      *net.DNSError
		verify   *tls.CertificateVerificationError
		record   tls.RecordHeaderError
		alert    tls.AlertError
		unknown  x509.UnknownAuthorityError
		host     x509.HostnameError
		timedOut net.Error
	)
	switch {
	case errors.As(err, &dns):
		return "dns"
	case errors.As(err, &verify), errors.As(err, &record), errors.As(err, &alert), errors.As(err, &unknown), errors.As(err, &host):
		return "tls"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timedOut) && timedOut.Timeout():
		return "timeout"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection_refused"
	}
	return "connection"
}
