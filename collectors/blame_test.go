package collectors

import (
	"slices"
	"testing"
)

func TestBlame(t *testing.T) {
	const mb = 1e6
	for _, c := range []struct {
		name   string
		growth map[string]float64
		events map[string]map[string]float64
		want   []Share
	}{
		{name: "nothing grew", growth: map[string]float64{"catalina.out": 0}},
		{name: "a few lines are nobody's fault", growth: map[string]float64{"catalina.out": 2000}},
		{
			name:   "the storm",
			growth: map[string]float64{"catalina.out": 96 * mb, "access.log": 3.5 * mb, "gc.log": 0.5 * mb},
			events: map[string]map[string]float64{"catalina.out": {"executor_rejected": 94 * mb, "oom": 0.1 * mb}},
			want: []Share{
				{"catalina.out", "", 0.96}, {"catalina.out", "executor_rejected", 0.94}, {"access.log", "", 0.035},
			},
		},
		{
			name:   "an event read late is held to its file",
			growth: map[string]float64{"a": 1 * mb, "b": 3 * mb},
			events: map[string]map[string]float64{"a": {"x": 2 * mb}},
			want:   []Share{{"b", "", 0.75}, {"a", "", 0.25}, {"a", "x", 0.25}},
		},
		{
			name:   "the largest few, a draw by name, a file that shrank",
			growth: map[string]float64{"d": mb, "c": mb, "b": mb, "a": mb, "e": -9 * mb},
			want:   []Share{{"a", "", 0.25}, {"b", "", 0.25}, {"c", "", 0.25}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Blame(c.growth, c.events); !slices.Equal(got, c.want) {
				t.Errorf("got  %v\nwant %v", got, c.want)
			}
		})
	}
}
