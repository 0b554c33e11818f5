// Package rules carries the alert and recording rules as ordinary Prometheus
// rule files: load for load runs with a scrape of a second or two, steady for
// every day. One topic is one file in each, with its promtool tests in tests.
//
// The files load in Prometheus 2.42 (the oldest with keep_firing_for) and later.
package rules

import "embed"

// Files holds load/*.yml and steady/*.yml.
//
//go:embed load/*.yml steady/*.yml
var Files embed.FS
