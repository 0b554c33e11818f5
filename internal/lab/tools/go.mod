// Module tools pins Prometheus' programs for the tests, as against the library that
// the product is built with; a test holds the two together. It has no code: the lab
// builds the programs from the source named here, with the dependencies of that
// release (see internal/lab/pinned.go). `go mod tidy` would take the pin away.
module github.com/jvm-sidecar/sidecar/internal/lab/tools

go 1.26.8

require github.com/prometheus/prometheus v0.304.2
