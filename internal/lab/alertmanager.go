package lab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// An Alertmanager is a real Alertmanager with a private data folder.
type Alertmanager struct {
	*Child
	Addr string
	// URL is where it answers. CA, User and Password are what it takes to come
	// in; empty where it is open.
	URL, CA, User, Password string
	client                  *http.Client
}

// StartAlertmanager starts a real Alertmanager with the given configuration and
// returns its address.
func StartAlertmanager(dir, config string) (*Child, string, error) {
	a, err := startAlertmanager(dir, config, &Alertmanager{client: &http.Client{Timeout: 5 * time.Second}})
	if err != nil {
		return nil, "", err
	}
	return a.Child, a.Addr, nil
}

// lockedHash is bcrypt of the password that StartLockedAlertmanager sets.
const lockedHash = "$2a$04$/z5tYhItO0qeMkhNHeJww.aE0.DD/8PpypqzTd99uzQ20TBqwNR7G"

// StartLockedAlertmanager is StartAlertmanager behind TLS with a certificate of
// its own, and a user.
func StartLockedAlertmanager(dir, config string) (*Alertmanager, error) {
	a := &Alertmanager{CA: filepath.Join(dir, "cert.pem"), User: "ann", Password: "open sesame"}
	key := filepath.Join(dir, "key.pem")
	trusted, err := selfSigned(a.CA, key)
	if err != nil {
		return nil, err
	}
	a.client = &http.Client{Timeout: 5 * time.Second, Transport: withUser{a, &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}}
	web := filepath.Join(dir, "web.yml")
	text := fmt.Sprintf("tls_server_config: {cert_file: %q, key_file: %q}\nbasic_auth_users: {%s: %q}\n", a.CA, key, a.User, lockedHash)
	if err := os.WriteFile(web, []byte(text), 0o600); err != nil {
		return nil, err
	}
	return startAlertmanager(dir, config, a, "--web.config.file="+web)
}

// withUser sends the user with each request.
type withUser struct {
	*Alertmanager
	next http.RoundTripper
}

func (u withUser) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.SetBasicAuth(u.User, u.Password)
	return u.next.RoundTrip(r)
}

// selfSigned writes a certificate for 127.0.0.1 and its key, and returns who
// trusts it.
func selfSigned(certFile, keyFile string) (*x509.CertPool, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(certFile, cert, 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600); err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(cert)
	return trusted, nil
}

func startAlertmanager(dir, config string, a *Alertmanager, more ...string) (*Alertmanager, error) {
	// The program is named after the package.
	path, env, err := tool("prometheus-alertmanager")
	if err != nil {
		return nil, err
	}
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "alertmanager.yml")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return nil, err
	}
	a.Addr = fmt.Sprintf("127.0.0.1:%d", port)
	if a.URL = "http://" + a.Addr; a.CA != "" {
		a.URL = "https://" + a.Addr
	}
	// Without a cluster address it would listen on all interfaces.
	args := []string{path,
		"--config.file=" + file, "--storage.path=" + filepath.Join(dir, "alertmanager"),
		"--web.listen-address=" + a.Addr, "--cluster.listen-address=", "--log.level=warn"}
	args = append(args, more...)
	if share := filepath.Join(filepath.Dir(path), "../share"); !isDir("/usr/share/prometheus/alertmanager") && isDir(share) {
		// Debian's build reads its templates from /usr/share and nowhere else. A
		// mount that only this process sees puts the unpacked ones there.
		unshare := []string{"unshare", "--mount"}
		if os.Getuid() != 0 {
			unshare = append(unshare, "--map-root-user")
		}
		args = append(append(unshare, "sh", "-c", `mount --bind "$0" /usr/share && exec "$@"`, share), args...)
	}
	output := filepath.Join(dir, "alertmanager.log")
	a.Child, err = startDaemon("alertmanager", output, env, args[0], args[1:]...)
	if err != nil {
		return nil, err
	}
	return a, a.readyBy(a.client, a.URL+"/-/ready", output)
}

// A Group is some alerts that Alertmanager tells together.
type Group struct {
	Labels map[string]string
	Alerts []struct {
		Labels map[string]string
		EndsAt time.Time
		Status struct{ State string }
	}
}

// Groups are the groups that it holds now.
func (a *Alertmanager) Groups() (groups []Group, err error) {
	r, err := a.client.Get(a.URL + "/api/v2/alerts/groups")
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("alertmanager: %s", r.Status)
	}
	return groups, json.NewDecoder(r.Body).Decode(&groups)
}
