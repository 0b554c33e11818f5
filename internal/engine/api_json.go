package engine

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// encoded is JSON that is ready. A panel's answer is some thousand points; made by
// way of each point's MarshalJSON and then gone through again twice, it took a
// third of the time of a query.
type encoded []byte

// encodeValue is the data of a query's answer.
func encodeValue(v parser.Value) (encoded, error) {
	points := 0
	if m, ok := v.(promql.Matrix); ok {
		points = m.TotalSamples()
	}
	// A point is seldom longer, and growing costs as much as writing.
	out := make([]byte, 0, 1024+40*points)
	out = append(append(out, `{"resultType":"`...), v.Type()...)
	out = append(out, `","result":`...)
	switch v := v.(type) {
	case promql.Matrix:
		out = append(out, '[')
		for i, s := range v {
			if i > 0 {
				out = append(out, ',')
			}
			var err error
			if out, err = appendSeries(out, s); err != nil {
				return nil, err
			}
		}
		out = append(out, ']')
	case promql.Vector:
		out = append(out, '[')
		for i, s := range v {
			if i > 0 {
				out = append(out, ',')
			}
			var err error
			if out, err = appendSample(out, s); err != nil {
				return nil, err
			}
		}
		out = append(out, ']')
	case promql.Scalar:
		out = appendPoint(out, promql.FPoint{T: v.T, F: v.V})
	default: // a string
		text, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		out = append(out, text...)
	}
	return append(out, '}'), nil
}

// appendSeries writes a series of a range, floats and histograms apart.
func appendSeries(out []byte, s promql.Series) ([]byte, error) {
	labels, err := json.Marshal(s.Metric)
	if err != nil {
		return nil, err
	}
	out = append(append(out, `{"metric":`...), labels...)
	if len(s.Floats) > 0 {
		out = append(out, `,"values":[`...)
		for i, p := range s.Floats {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendPoint(out, p)
		}
		out = append(out, ']')
	}
	if len(s.Histograms) > 0 {
		text, err := json.Marshal(s.Histograms)
		if err != nil {
			return nil, err
		}
		out = append(append(out, `,"histograms":`...), text...)
	}
	return append(out, '}'), nil
}

func appendSample(out []byte, s promql.Sample) ([]byte, error) {
	if s.H != nil {
		text, err := json.Marshal(s)
		return append(out, text...), err
	}
	labels, err := json.Marshal(s.Metric)
	if err != nil {
		return nil, err
	}
	out = append(append(out, `{"metric":`...), labels...)
	out = append(out, `,"value":`...)
	return append(appendPoint(out, promql.FPoint{T: s.T, F: s.F}), '}'), nil
}

// appendPoint writes seconds and value, which is a string since JSON has no NaN.
func appendPoint(out []byte, p promql.FPoint) []byte {
	out = append(out, '[')
	t := p.T
	if t < 0 {
		out, t = append(out, '-'), -t
	}
	out = strconv.AppendInt(out, t/1000, 10)
	if ms := t % 1000; ms > 0 {
		out = append(out, '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10))
	}
	form := byte('f')
	if abs := math.Abs(p.F); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		form = 'e'
	}
	out = strconv.AppendFloat(append(out, ',', '"'), p.F, form, -1, 64)
	return append(out, '"', ']')
}
