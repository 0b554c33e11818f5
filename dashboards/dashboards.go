// Package dashboards carries the Grafana dashboards as JSON. They are built by
// the program in gen, whose library stays out of the sidecar; go generate mends
// them.
//
// They are of Grafana's classic schema, not of the one with kinds and specs, so
// that older versions import them too.
package dashboards

import "embed"

//go:generate go run ./gen .

// Files holds one dashboard a file.
//
//go:embed *.json
var Files embed.FS
