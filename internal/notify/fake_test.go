package notify

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/common/model"
)

type modelFingerprint = model.Fingerprint

// fake is a receiver that wants everything.
type fake func() error

func (fake) wants(*Alert) bool                      { return true }
func (fake) lost(*Alert)                            {}
func (fake) follow(receiver)                        {}
func (f fake) send(context.Context, []*Alert) error { return f() }
func contextWithTimeout(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}
