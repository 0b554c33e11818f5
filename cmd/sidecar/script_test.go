package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"sidecar": main})
}

// TestScripts runs whole-program scenarios: commands on top, files below, one
// scenario each, named for it.
func TestScripts(t *testing.T) {
	logs, err := filepath.Abs("testdata/logs")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("LOGS", logs)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"freeport":   freePort,
			"get":        get,
			"selfsigned": selfSigned,
		},
	})
}

// freePort NAME sets NAME to a port on loopback that is free now.
func freePort(ts *testscript.TestScript, neg bool, args []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	ts.Check(err)
	ts.Setenv(args[0], port)
}

// get METHOD URL STATUS TEXT asks until the answer has the status and holds the
// text, for ten seconds at most.
func get(ts *testscript.TestScript, neg bool, args []string) {
	method, url, status, text := args[0], args[1], args[2], args[3]
	last := ""
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		req, err := http.NewRequest(method, url, nil)
		ts.Check(err)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			last = err.Error()
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		last = fmt.Sprintf("%d %s", resp.StatusCode, body)
		if fmt.Sprint(resp.StatusCode) == status && strings.Contains(string(body), text) {
			return
		}
	}
	ts.Fatalf("%s %s: want %s with %q, got %.2000s", method, url, status, text, last)
}

// selfSigned CERT KEY writes a certificate that nobody but a test would trust.
func selfSigned(ts *testscript.TestScript, neg bool, args []string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	ts.Check(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	ts.Check(err)
	for i, block := range []*pem.Block{{Type: "CERTIFICATE", Bytes: cert}, {Type: "PRIVATE KEY", Bytes: private}} {
		ts.Check(os.WriteFile(ts.MkAbs(args[i]), pem.EncodeToMemory(block), 0o600))
	}
}
