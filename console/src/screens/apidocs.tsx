// The API documentation: how to sign in, and every operation of both APIs with a runnable example. It is available without signing in.
import { useMemo, useState } from "preact/hooks"
import { call, get, Refusal, type Call } from "../api"
import { useData } from "../data"
import { asCurl } from "../frame"
import { Button, Head, Loading, Trouble } from "../parts/basics"
import { place, setQuery } from "../router"
import { session } from "../session"

interface Parameter {
  name: string
  in: string
  description?: string
  required?: boolean
  $ref?: string
}
interface Operation {
  summary?: string
  description?: string
  tags?: string[]
  parameters?: Parameter[]
  requestBody?: { content: Record<string, { example?: unknown }> }
  responses: Record<string, { description?: string; $ref?: string }>
  security?: unknown[]
}
interface Document {
  info: { title: string; version: string; description: string }
  paths: Record<string, Record<string, Operation> & { parameters?: Parameter[] }>
  components: { parameters: Record<string, Parameter>; responses: Record<string, { description: string }> }
}
interface Entry {
  method: string
  path: string
  o: Operation
  shared: Parameter[]
}

const methods = ["get", "post", "put", "patch", "delete"]

export function APIDocs() {
  const {
    data: d,
    problem,
    reload,
  } = useData<Document>("openapi", s => get("/api/openapi.json", { signal: s, quiet: true }))
  const q = place.value.query.get("q") ?? "",
    [typed, setTyped] = useState(q),
    open = place.value.query.get("open") ?? ""
  const sections = useMemo(() => {
    const by = new Map<string, Entry[]>()
    if (d)
      for (const [path, operations] of Object.entries(d.paths))
        for (const method of methods) {
          const o = operations[method]
          if (!o) continue
          const words = `${method} ${path} ${o.summary ?? ""}`.toLowerCase()
          if (
            q &&
            !q
              .toLowerCase()
              .split(/\s+/)
              .every(w => words.includes(w))
          )
            continue
          const tag = o.tags?.[0] ?? "other"
          by.set(tag, [
            ...(by.get(tag) ?? []),
            { method, path, o, shared: (operations.parameters as Parameter[] | undefined) ?? [] },
          ])
        }
    return [...by].sort((a, b) => (a[0] < b[0] ? -1 : 1))
  }, [d, q])
  return (
    <>
      <Head title="API documentation" kind={d ? `${d.info.title} ${d.info.version}` : ""}>
        <a class="button" href="/api/openapi.json" download>
          OpenAPI document
        </a>
      </Head>
      <section class="card">
        <h2>Signing in</h2>
        <ul class="plain-list">
          <li>
            <strong>A bearer token</strong>, for programs and for both APIs:{" "}
            <code>portolan token create --data DIR --name ci</code>, then <code>-H "Authorization: Bearer $TOKEN"</code>
            .
          </li>
          <li>
            <strong>A session</strong>, for the address API: <code>POST /api/v2/sessions</code> with{" "}
            <code>{`{"username":"ada","password":"…"}`}</code>; its <code>basicAuthenticationCredentials</code> follow{" "}
            <code>Authorization: Basic</code>.
          </li>
          <li>
            <strong>Name and password</strong> as Basic credentials with each request, for the address API.
          </li>
          <li>
            <strong>A key set</strong>, for the fleet API: <code>portolan key create</code>, exchanged at{" "}
            <code>POST /v1/api/authentication/token</code>.
          </li>
          <li>
            {session.value ? (
              <>
                You are signed in as <strong>{session.value.user.name}</strong>. Examples run in your session.
              </>
            ) : (
              <>
                <a href="/">Sign in</a> to run the examples here.
              </>
            )}
          </li>
        </ul>
      </section>
      <div class="tools">
        <form
          class="filter"
          role="search"
          onSubmit={e => {
            e.preventDefault()
            setQuery({ q: typed })
          }}
        >
          <input
            type="text"
            aria-label="Filter operations"
            placeholder="networks addresses post"
            value={typed}
            onInput={e => setTyped(e.currentTarget.value)}
          />
          <button type="submit">Filter</button>
          {q && (
            <button
              type="button"
              onClick={() => {
                setTyped("")
                setQuery({ q: null })
              }}
            >
              Clear filter
            </button>
          )}
        </form>
        <span class="muted">{d && sections.reduce((n, s) => n + s[1].length, 0)} operations</span>
      </div>
      {problem ? (
        <Trouble problem={problem} retry={reload} />
      ) : !d ? (
        <Loading what="the document" />
      ) : (
        sections.map(([tag, list]) => (
          <section key={tag} class="api-section">
            <h2>
              <button
                class="plain"
                aria-expanded={open === tag || sections.length === 1}
                onClick={() => setQuery({ open: open === tag ? null : tag })}
              >
                {tag} <span class="muted">{list.length}</span>
              </button>
            </h2>
            {(open === tag || sections.length === 1) && list.map(e => <One key={e.method + e.path} e={e} d={d} />)}
          </section>
        ))
      )}
    </>
  )
}

function One({ e, d }: { e: Entry; d: Document }) {
  const [open, setOpen] = useState(false)
  return (
    <div class="operation">
      <button class="plain operation-head" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span class={"method " + e.method}>{e.method.toUpperCase()}</span> <code>{e.path}</code>{" "}
        <span class="muted cut">{e.o.summary}</span>
      </button>
      {open && <Details e={e} d={d} />}
    </div>
  )
}

function Details({ e, d }: { e: Entry; d: Document }) {
  const parameters = [...e.shared, ...(e.o.parameters ?? [])]
    .map(p => (p.$ref ? d.components.parameters[p.$ref.split("/").pop()!] : p))
    .filter(Boolean)
  const example = Object.values(e.o.requestBody?.content ?? {}).find(c => c.example !== undefined)?.example
  const names = [...e.path.matchAll(/\{(\w+)\}/g)].map(m => m[1])
  const [values, setValues] = useState<Record<string, string>>({}),
    [queryText, setQueryText] = useState(""),
    [body, setBody] = useState(example === undefined ? "" : JSON.stringify(example, null, 1)),
    [answer, setAnswer] = useState<string>()
  const path =
    e.path.replace(/\{(\w+)\}/g, (_, n) => (values[n] ? encodeURIComponent(values[n]) : `{${n}}`)) +
    (queryText ? (queryText.startsWith("?") ? "" : "?") + queryText : "")
  const streams = JSON.stringify(e.o.responses["200"] ?? {}).includes("text/event-stream") // a stream does not end
  const reads = e.method === "get" && !streams,
    tries = e.method !== "get" && e.path.startsWith("/api/v2/")
  const request: Call = {
    method: e.method.toUpperCase(),
    path,
    body: e.method === "get" || !body ? undefined : body,
    type: e.method === "patch" ? "application/merge-patch+json" : "application/json",
    headers: tries ? { "x-portolan-dry-run": "true" } : {},
  }
  const run = async () => {
    setAnswer("…")
    try {
      const r = await call(request.method, path, request.body, {
        headers: request.headers,
        type: request.body === undefined ? undefined : request.type,
        quiet: true,
      })
      setAnswer(
        r.status + "\n" + (typeof r.body === "string" ? r.body : JSON.stringify(r.body, null, 2)).slice(0, 20_000),
      )
    } catch (x) {
      setAnswer(x instanceof Refusal ? x.problem.status + "\n" + JSON.stringify(x.problem, null, 2) : String(x))
    }
  }
  return (
    <div class="operation-body">
      {e.o.description && <p>{e.o.description}</p>}
      {parameters.length > 0 && (
        <details>
          <summary>{parameters.length} parameters and headers</summary>
          <dl class="facts">
            {parameters.map(p => (
              <div key={p.in + p.name}>
                <dt>
                  <code>{p.name}</code> <span class="muted">{p.in}</span>
                </dt>
                <dd>{p.description}</dd>
              </div>
            ))}
          </dl>
        </details>
      )}
      <div class="fields">
        {names.map(n => (
          <label key={n}>
            {n}
            <input
              class="mono"
              value={values[n] ?? ""}
              onInput={x => {
                const v = x.currentTarget.value
                setValues(s => ({ ...s, [n]: v }))
              }}
            />
          </label>
        ))}
        {reads && (
          <label>
            Query
            <input
              class="mono"
              placeholder="limit=3&fields=id,name"
              value={queryText}
              onInput={x => setQueryText(x.currentTarget.value)}
            />
          </label>
        )}
      </div>
      {e.method !== "get" && e.o.requestBody && (
        <label>
          Body
          <textarea
            class="mono"
            rows={Math.min(12, Math.max(3, body.split("\n").length))}
            spellcheck={false}
            value={body}
            onInput={x => setBody(x.currentTarget.value)}
          />
        </label>
      )}
      <pre class="command" tabIndex={0}>
        {asCurl({ ...request, headers: {} })}
      </pre>
      <div class="buttons">
        {session.value && (reads || tries) && (
          <Button primary={reads} disabled={path.includes("{")} onClick={() => void run()}>
            {reads ? "Run" : "Dry run"}
          </Button>
        )}
      </div>
      {answer !== undefined && (
        <pre class="log" tabIndex={0} aria-label="Response">
          {answer}
        </pre>
      )}
      <p class="muted small">
        Answers:{" "}
        {Object.entries(e.o.responses)
          .map(([status, r]) => status + (r.description ? " " + r.description : ""))
          .join(" · ")}
      </p>
    </div>
  )
}
