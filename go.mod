module github.com/jvm-sidecar/sidecar

go 1.26.8

require (
	github.com/nxadm/tail v1.4.11
	github.com/prometheus/client_model v0.6.3
	golang.org/x/sys v0.50.0
	golang.org/x/text v0.44.0
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/fsnotify/fsnotify v1.6.0 // indirect
	gopkg.in/tomb.v1 v1.0.0-20141024135613-dd632973f1e7 // indirect
)
