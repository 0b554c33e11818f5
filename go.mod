module github.com/jvm-sidecar/sidecar

go 1.26.8

require (
	github.com/prometheus/client_model v0.6.3
	google.golang.org/protobuf v1.36.12
)

require golang.org/x/sys v0.48.0 // indirect
