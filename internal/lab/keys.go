package lab

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// The keys of the lab's TLS connectors are made anew for each server and are
// worth nothing: no client checks them, and they never leave its base folder.
const (
	keystore         = "lab.p12"
	keystorePassword = "changeit"
)

// writeKeys makes a key and its certificate in dir: a keystore by the JDK's own
// keytool, and lab.crt and lab.key for OpenSSL.
func writeKeys(dir string, jdk JDK) error {
	if _, err := run(context.Background(), exec.Command(jdk.Tool("keytool"), "-genkeypair", "-alias", "lab", "-keyalg", "RSA", "-keysize", "2048",
		"-validity", "30", "-dname", "CN=localhost", "-ext", "san=dns:localhost,ip:127.0.0.1",
		"-storetype", "PKCS12", "-keystore", filepath.Join(dir, keystore), "-storepass", keystorePassword)); err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	from := time.Now().Add(-time.Hour)
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: from, NotAfter: from.AddDate(0, 1, 0)}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "lab.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "lab.key"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}), 0o600)
}

// tls is what makes a Connector one with TLS, in the words of its version:
// attributes up to 9.0, elements inside of it from 10 on. APR takes OpenSSL's
// files.
func (o Tomcat) tls() (attributes, inside string) {
	const common = `SSLEnabled="true" scheme="https" secure="true"`
	switch {
	case o.Protocol == "apr":
		return common + ` SSLCertificateFile="${catalina.base}/conf/lab.crt" SSLCertificateKeyFile="${catalina.base}/conf/lab.key"`, ""
	case o.jakarta():
		return common, `<SSLHostConfig><Certificate certificateKeystoreFile="conf/` + keystore + `" certificateKeystoreType="PKCS12" certificateKeystorePassword="` + keystorePassword + `"/></SSLHostConfig>`
	}
	return common + ` clientAuth="false" sslProtocol="TLS" keystoreFile="conf/` + keystore + `" keystoreType="PKCS12" keystorePass="` + keystorePassword + `"`, ""
}
