package figures

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/s2"
	"google.golang.org/protobuf/encoding/protowire"
)

// Remote keeps figures at a server with the HTTP API of Prometheus: it sends samples by remote write and reads them by range queries. How
// long they are kept is a setting of that server. Its methods are safe for concurrent use.
type Remote struct {
	base     *url.URL
	client   *http.Client
	instance string
	now      func() time.Time

	mu sync.Mutex
	// pending are encoded requests that the server has not accepted, the oldest first; sent and lost count samples. Guarded by mu.
	pending    []remoteBatch
	sent, lost int64
}

// remoteBatch is an encoded request.
type remoteBatch struct {
	body    []byte
	samples int64
}

// maxRemote is the number of batches that wait for a server that is not reachable: an hour of samples.
const maxRemote = 60

// instanceLabel distinguishes the managers in metrics of a process.
const instanceLabel = "instance"

// NewRemote returns the figures at a URL, such as http://prometheus:9090. instance names this manager.
func NewRemote(base *url.URL, instance string, client *http.Client, now func() time.Time) *Remote {
	return &Remote{base: base, client: client, instance: instance, now: now}
}

// Append sends samples. Those that cannot be sent are sent with the next ones, for up to an hour.
func (r *Remote) Append(ctx context.Context, at time.Time, all []Sample) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(all) > 0 {
		r.pending = append(r.pending, remoteBatch{s2.EncodeSnappy(nil, r.encode(at, all)), int64(len(all))})
	}
	for len(r.pending) > maxRemote {
		r.lost += r.pending[0].samples
		r.pending = slices.Delete(r.pending, 0, 1)
	}
	for len(r.pending) > 0 {
		refused, err := r.post(ctx, r.pending[0].body)
		if err != nil && !refused {
			return err
		}
		if refused {
			r.lost += r.pending[0].samples
		} else {
			r.sent += r.pending[0].samples
		}
		r.pending = slices.Delete(r.pending, 0, 1)
		if err != nil {
			return err
		}
	}
	return nil
}

// encode returns a WriteRequest of the remote write protocol, version 1.
func (r *Remote) encode(at time.Time, all []Sample) (request []byte) {
	for _, s := range all {
		pairs := [][2]string{{"__name__", namePrefix + s.Metric}}
		if s.By != "" {
			pairs = append(pairs, [2]string{byLabel, s.By})
		}
		if of := order(s.Metric); of >= 0 && declared[of].OfProcess && s.Object == Manager {
			pairs = append(pairs, [2]string{instanceLabel, r.instance})
		}
		pairs = append(pairs, [2]string{objectLabel, s.Object}) // sorted by name
		var series []byte
		for _, p := range pairs {
			var label []byte
			for i, text := range p {
				label = protowire.AppendTag(label, protowire.Number(i+1), protowire.BytesType)
				label = protowire.AppendString(label, text)
			}
			series = protowire.AppendTag(series, 1, protowire.BytesType)
			series = protowire.AppendBytes(series, label)
		}
		sample := protowire.AppendTag(nil, 1, protowire.Fixed64Type)
		sample = protowire.AppendFixed64(sample, math.Float64bits(s.Value))
		sample = protowire.AppendTag(sample, 2, protowire.VarintType)
		sample = protowire.AppendVarint(sample, uint64(at.UnixMilli())) //nolint:gosec // after 1970
		series = protowire.AppendTag(series, 2, protowire.BytesType)
		series = protowire.AppendBytes(series, sample)
		request = protowire.AppendTag(request, 1, protowire.BytesType)
		request = protowire.AppendBytes(request, series)
	}
	return request
}

// post sends a request. refused means that the server will never accept it.
func (r *Remote) post(ctx context.Context, body []byte) (refused bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.base.JoinPath("api/v1/write").String(), bytes.NewReader(body))
	if err != nil {
		return true, err
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	request.Header.Set("Content-Encoding", "snappy")
	request.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	answer, err := r.client.Do(request)
	if err != nil {
		return false, fmt.Errorf("send figures: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode/100 == 2 {
		return false, nil
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 300)) // only for the message
	refused = answer.StatusCode/100 == 4 && answer.StatusCode != http.StatusTooManyRequests
	return refused, fmt.Errorf("send figures: %s: %s", answer.Status, bytes.TrimSpace(text))
}

// Maintain does nothing: the server maintains its data.
func (r *Remote) Maintain(context.Context) error { return nil }

// Usage returns no levels, and the numbers of sent and lost samples.
func (r *Remote) Usage() (all []Usage, samples, refused int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return nil, r.sent, r.lost
}

// Close does nothing.
func (r *Remote) Close() error { return nil }

// Query returns the lines of an object.
func (r *Remote) Query(ctx context.Context, q Query) (all []Line, err error) {
	step := max(q.Step, Interval)
	names := namePrefix + ".+"
	if len(q.Metrics) > 0 {
		names = namePrefix + "(" + strings.Join(q.Metrics, "|") + ")"
	}
	// The function drops the name, so a label has it. The subquery is for label_replace.
	selected := fmt.Sprintf(`label_replace({__name__=~%q,%s=%q},"metric","$1","__name__","(.+)")[%ds:%ds]`, names, objectLabel, q.Object,
		int(step.Seconds()), int(Interval.Seconds()))
	found := map[[2]string]map[int64]Point{}
	for _, function := range []string{"avg_over_time", "max_over_time"} {
		series, err := r.ask(ctx, "sum without("+instanceLabel+") ("+function+"("+selected+"))", q, step)
		if err != nil {
			return nil, err
		}
		for _, one := range series {
			key := [2]string{strings.TrimPrefix(one.Metric["metric"], namePrefix), one.Metric[byLabel]}
			if order(key[0]) < 0 {
				continue
			}
			if found[key] == nil {
				found[key] = map[int64]Point{}
			}
			for _, v := range one.Values {
				at, value, err := v.point()
				if err != nil {
					return nil, err
				}
				p := found[key][at-int64(step.Seconds())]
				p.At = at - int64(step.Seconds()) // a range ends at its time
				if function == "avg_over_time" {
					p.Mean = value
				}
				p.Max = max(p.Mean, value)
				found[key][p.At] = p
			}
		}
	}
	for key, points := range found {
		one := Line{Metric: key[0], By: key[1]}
		for _, p := range points {
			one.Points = append(one.Points, p)
		}
		slices.SortFunc(one.Points, func(a, b Point) int { return int(a.At - b.At) })
		all = append(all, one)
	}
	sortLines(all)
	return all, nil
}

// promSeries is a series in an answer of Prometheus. Values are those of a range, Value that of an instant.
type promSeries struct {
	Metric map[string]string `json:"metric"`
	Values []promValue       `json:"values"`
	Value  promValue         `json:"value"`
}

// promValue is a time in Unix seconds and a number as a text.
type promValue [2]json.RawMessage

func (v promValue) point() (at int64, value float64, err error) {
	var seconds float64
	var text string
	if err := errors.Join(json.Unmarshal(v[0], &seconds), json.Unmarshal(v[1], &text)); err != nil {
		return 0, 0, fmt.Errorf("an answer of the server of figures: %w", err)
	}
	value, err = strconv.ParseFloat(text, 64)
	return int64(seconds), value, err
}

// ask sends a range query.
func (r *Remote) ask(ctx context.Context, text string, q Query, step time.Duration) ([]promSeries, error) {
	size := int64(step.Seconds())
	return r.get(ctx, "api/v1/query_range", url.Values{"query": {text}, "start": {strconv.FormatInt(floorTime(q.From.Unix(), size)+size, 10)},
		"end": {strconv.FormatInt(q.To.Unix(), 10)}, "step": {strconv.FormatInt(size, 10)}})
}

// maxRemoteAnswer is the maximum size of an answer.
const maxRemoteAnswer = 64 << 20

func (r *Remote) get(ctx context.Context, path string, form url.Values) ([]promSeries, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.base.JoinPath(path).String(), strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := r.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("request figures: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	var document struct {
		Status, Error string
		Data          struct{ Result []promSeries }
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxRemoteAnswer)).Decode(&document); err != nil {
		return nil, fmt.Errorf("request figures: %s: %w", answer.Status, err)
	}
	if document.Status != "success" {
		return nil, fmt.Errorf("request figures: %s: %s", answer.Status, document.Error)
	}
	return document.Data.Result, nil
}

// Trends returns the trends of a metric by object.
func (r *Remote) Trends(ctx context.Context, metric string, since time.Time) (map[string]Trend, error) {
	name := namePrefix + metric
	growth, err := r.get(ctx, "api/v1/query", url.Values{"query": {fmt.Sprintf("deriv(%s[%ds])", name, int(r.now().Sub(since).Seconds()))}})
	if err != nil {
		return nil, err
	}
	last, err := r.get(ctx, "api/v1/query", url.Values{"query": {fmt.Sprintf("last_over_time(%s[15m])", name)}})
	if err != nil {
		return nil, err
	}
	all := map[string]Trend{}
	for _, one := range growth {
		_, v, err := one.Value.point()
		if err != nil {
			return nil, err
		}
		all[one.Metric[objectLabel]] = Trend{PerDay: v * day.Seconds()}
	}
	for _, one := range last {
		_, v, err := one.Value.point()
		if err != nil {
			return nil, err
		}
		if t, there := all[one.Metric[objectLabel]]; there {
			t.Last = v
			all[one.Metric[objectLabel]] = t
		}
	}
	return all, nil
}
