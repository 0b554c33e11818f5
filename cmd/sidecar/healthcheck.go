package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/alecthomas/kingpin/v2"
)

// addHealthcheck is for images that hold nothing but this program: neither curl
// nor a shell is there to ask.
func addHealthcheck(app *kingpin.Application) (string, func(streams) error) {
	cmd := app.Command("healthcheck", "Ask a running sidecar whether it is alive; exit 1 when it is not. For container images, which have no curl.")
	url := cmd.Flag("url", "What to ask. /-/ready instead asks whether the backlog of the start is read.").Default("http://127.0.0.1:10404/-/healthy").String()
	timeout := cmd.Flag("timeout", "How long to wait for the answer.").Default("3s").Duration()
	return cmd.FullCommand(), func(s streams) error {
		ctx, cancel := context.WithTimeout(context.Background(), *timeout)
		defer cancel()
		return askHealth(ctx, *url, s.out)
	}
}

// askHealth sends one request. A 401 is life too: the web config wants a user,
// and whoever says so serves. The certificate is not verified, because the name
// in it is hardly ever 127.0.0.1, and nothing secret is sent or believed.
func askHealth(ctx context.Context, url string, out io.Writer) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	client := &http.Client{
		// No proxy: a health check asks its own machine.
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 1000))
	switch answer.StatusCode {
	case http.StatusOK:
		fmt.Fprint(out, string(text))
	case http.StatusUnauthorized:
		fmt.Fprintln(out, "alive; it asks for a user")
	default:
		return fmt.Errorf("%s: %s: %s", url, answer.Status, strings.TrimSpace(string(text)))
	}
	return nil
}
