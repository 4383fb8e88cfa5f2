package middleware

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"
)

// Traces sends spans of requests and changes to an OpenTelemetry collector, by OTLP over HTTP. The nil Traces sends nothing.
type Traces struct {
	provider *trace.TracerProvider
	tracer   api.Tracer
	// from reads which trace a request is part of (W3C Trace Context).
	from propagation.TextMapPropagator
}

// ParseTraces checks the URL of a collector: traces go to /v1/traces there, where it names no other path.
func ParseTraces(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is not the URL of a collector, such as http://127.0.0.1:4318", text)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	return u, nil
}

// NewTraces begins to send to a collector; it returns nil where to is nil.
func NewTraces(ctx context.Context, to *url.URL, version, host string) (*Traces, error) {
	if to == nil {
		return nil, nil
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(to.String()))
	if err != nil {
		return nil, err
	}
	about := resource.NewSchemaless(attribute.String("service.name", "portolan"), attribute.String("service.version", version),
		attribute.String("host.name", host))
	t := &Traces{provider: trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(about)), from: propagation.TraceContext{}}
	t.tracer = t.provider.Tracer("portolan")
	return t, nil
}

// startSpan starts the span of a request; end ends it with the status of the answer.
func (t *Traces) startSpan(r *http.Request, door string, a *requestInfo) (_ *http.Request, end func(status int)) {
	if t == nil {
		return r, func(int) {}
	}
	ctx, span := t.tracer.Start(t.from.Extract(r.Context(), propagation.HeaderCarrier(r.Header)), r.Method+" "+door,
		api.WithSpanKind(api.SpanKindServer), api.WithAttributes(attribute.String("http.request.method", r.Method),
			attribute.String("url.path", r.URL.Path), attribute.String("portolan.door", door), attribute.String("portolan.request", a.id)))
	return r.WithContext(ctx), func(status int) {
		span.SetAttributes(attribute.Int("http.response.status_code", status), attribute.String("enduser.id", a.user))
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, http.StatusText(status))
		}
		span.End()
	}
}

// Changed adds the span of a change, its time in the queue included, to that of its request.
func (t *Traces) Changed(ctx context.Context, began time.Time) {
	if t == nil || !api.SpanContextFromContext(ctx).IsValid() {
		return
	}
	_, span := t.tracer.Start(ctx, "change", api.WithTimestamp(began))
	span.End()
}

// Flush sends the spans that were not sent yet.
func (t *Traces) Flush(ctx context.Context) error { return t.provider.ForceFlush(ctx) }

// Close sends the spans that were not sent yet.
func (t *Traces) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}
