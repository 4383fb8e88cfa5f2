// Bearer tokens and key sets: owner, last use, creation and revocation. The secret of a new token is shown once.
import { useState } from "preact/hooks"
import { call, get, type Problem } from "../api"
import { problemOf, useData } from "../data"
import { Icon } from "../icons"
import { Button, Dialog, Empty, Field, Head, Loading, Trouble, When } from "../parts/basics"
import { faultOf } from "../parts/form"
import { ListGrid } from "../parts/grid"
import { session } from "../session"
import { toast } from "../notice"

interface Token {
  id: string
  kind: string
  name: string
  role: string
  scopes?: string[]
  user?: string
  created: string
  expires?: string
  lastUsed?: string
  revoked: boolean
}
interface Made extends Token {
  token?: string
  clientId?: string
  clientSecret?: string
}

export function Tokens() {
  const { data, problem, reload } = useData<{ data: Token[] }>("tokens", s => get("tokens", { signal: s }))
  const [making, setMaking] = useState(false),
    [ending, setEnding] = useState<Token | null>(null)
  const list = (data?.data ?? []).filter(t => !t.revoked)
  return (
    <>
      <Head title="Tokens" kind={session.value?.administrator ? "of all users" : "yours"}>
        <Button icon="plus" primary onClick={() => setMaking(true)}>
          New token
        </Button>
      </Head>
      <p class="muted">
        Programs sign in with tokens. A token has at most the rights of its user. Send{" "}
        <code>-H "Authorization: Bearer $TOKEN"</code> with each request.
      </p>
      {!data ? (
        problem ? (
          <Trouble problem={problem} retry={reload} />
        ) : (
          <Loading what="the tokens" />
        )
      ) : (
        <ListGrid
          label="Tokens"
          save="tokens"
          list={list}
          id={t => t.id}
          empty={<Empty title="No tokens yet." />}
          columns={[
            { key: "name", title: "Name", width: "minmax(9rem,2fr)", cell: t => <span class="cut">{t.name}</span> },
            {
              key: "kind",
              title: "Kind",
              width: "7rem",
              minor: true,
              cell: t => (t.kind === "keyset" ? "key set" : "token"),
            },
            {
              key: "user",
              title: "User",
              width: "minmax(6rem,10rem)",
              cell: t => t.user ?? <span class="muted">none</span>,
            },
            { key: "role", title: "Role", width: "8rem", minor: true, cell: t => t.role },
            {
              key: "scopes",
              title: "Scopes",
              width: "minmax(6rem,1fr)",
              minor: true,
              cell: t => <span class="cut">{t.scopes?.join(", ") ?? "everything"}</span>,
            },
            { key: "used", title: "Last used", width: "8rem", narrow: "5.4rem", cell: t => <When at={t.lastUsed} /> },
            {
              key: "expires",
              title: "Expires",
              width: "9rem",
              minor: true,
              cell: t => (t.expires ? t.expires.slice(0, 10) : "never"),
            },
            {
              key: "acts",
              title: "",
              width: "6rem",
              narrow: "5rem",
              cell: t => (
                <button class="small" aria-label={"Revoke " + t.name} onClick={() => setEnding(t)}>
                  Revoke
                </button>
              ),
            },
          ]}
        />
      )}
      {making && (
        <NewToken
          close={() => {
            setMaking(false)
            reload()
          }}
        />
      )}
      {ending && <Revoke t={ending} close={() => setEnding(null)} done={reload} />}
    </>
  )
}

const words = (text: string) => text.split(/[\s,]+/).filter(w => w)

const days = [1, 7, 30, 90, 365, 3650]

function NewToken({ close }: { close: () => void }) {
  const [name, setName] = useState(""),
    [kind, setKind] = useState("bearer"),
    [role, setRole] = useState("analyst"),
    [life, setLife] = useState(90),
    [scopes, setScopes] = useState("")
  const [problem, setProblem] = useState<Problem>(),
    [made, setMade] = useState<Made>()
  const submit = async (e: Event) => {
    e.preventDefault()
    try {
      const expires = new Date(Date.now() + life * 86400_000 - 60_000).toISOString().slice(0, 19) + "Z"
      setMade(
        (
          await call<Made>(
            "POST",
            "tokens",
            { name, kind, role, expires, ...(words(scopes).length ? { scopes: words(scopes) } : {}) },
            { quiet: true },
          )
        ).body,
      )
    } catch (e) {
      setProblem(problemOf(e))
    }
  }
  const copy = (text: string) =>
    navigator.clipboard?.writeText(text).then(
      () => toast("Copied."),
      () => toast("The browser blocks copying here. Select the text and copy it.", { bad: true }),
    )
  if (made)
    return (
      <Dialog title={"Created " + made.name} close={close}>
        <p>
          <strong>This is shown only once.</strong> Store it where only the program can read it.
        </p>
        {[
          ["Token", made.token],
          ["Client id", made.clientId],
          ["Client secret", made.clientSecret],
        ]
          .filter(([, v]) => v)
          .map(([what, v]) => (
            <div key={what}>
              <h3>{what}</h3>
              <pre class="command" tabIndex={0}>
                {v}
              </pre>
              <Button icon="copy" onClick={() => void copy(v!)}>
                Copy
              </Button>
            </div>
          ))}
        <div class="buttons">
          <Button primary onClick={close}>
            Done
          </Button>
        </div>
      </Dialog>
    )
  return (
    <Dialog title="New token" close={close}>
      <form onSubmit={submit}>
        {problem && <Trouble problem={problem} />}
        <div class="fields">
          <Field label="Name *" wrong={faultOf(problem, "name")}>
            {id => (
              <input id={id} required maxLength={128} value={name} onInput={e => setName(e.currentTarget.value)} />
            )}
          </Field>
          <Field
            label="Kind"
            hint={
              kind === "keyset"
                ? "Programs exchange a key set at the fleet API for tokens that are valid for five minutes."
                : "Programs send a bearer token with each request."
            }
          >
            {(id, d) => (
              <select id={id} aria-describedby={d} value={kind} onChange={e => setKind(e.currentTarget.value)}>
                <option value="bearer">bearer token</option>
                <option value="keyset">key set</option>
              </select>
            )}
          </Field>
          <Field
            label="Role"
            hint={
              scopes && role === "analyst"
                ? "An analyst can only read. Choose administrator to allow changes."
                : "An analyst can only read. An administrator token has all rights of its user."
            }
          >
            {(id, d) => (
              <select id={id} aria-describedby={d} value={role} onChange={e => setRole(e.currentTarget.value)}>
                <option>analyst</option>
                <option>administrator</option>
              </select>
            )}
          </Field>
          <Field
            label="Scopes"
            wrong={faultOf(problem, "scopes")}
            hint="Collections that the token can change, such as resourceRecords. It can read all others of the address API. Enter address or fleet for a whole API. Empty: no restriction."
          >
            {(id, d) => (
              <input
                id={id}
                aria-describedby={d}
                value={scopes}
                placeholder="resourceRecords, addresses"
                spellcheck={false}
                onInput={e => {
                  setScopes(e.currentTarget.value)
                  setProblem(undefined)
                }}
              />
            )}
          </Field>
          <Field label="Valid for">
            {id => (
              <select id={id} value={life} onChange={e => setLife(Number(e.currentTarget.value))}>
                {days.map(n => (
                  <option key={n} value={n}>
                    {n === 1 ? "a day" : n === 365 ? "a year" : n === 3650 ? "ten years" : n + " days"}
                  </option>
                ))}
              </select>
            )}
          </Field>
        </div>
        <div class="buttons">
          <button class="primary" type="submit">
            Create
          </button>
          <Button onClick={close}>Cancel</Button>
        </div>
      </form>
    </Dialog>
  )
}

function Revoke({ t, close, done }: { t: Token; close: () => void; done: () => void }) {
  const [problem, setProblem] = useState<Problem>()
  const apply = async () => {
    try {
      await call("DELETE", "tokens/" + encodeURIComponent(t.id))
      toast(`Revoked ${t.name}.`)
      close()
      done()
    } catch (e) {
      setProblem(problemOf(e))
    }
  }
  return (
    <Dialog title={"Revoke " + t.name} close={close}>
      {problem && <Trouble problem={problem} />}
      <p>
        <Icon name="triangle-alert" size={14} /> Programs that use this token are refused immediately. You cannot undo
        this.
      </p>
      <div class="buttons">
        <Button danger onClick={() => void apply()}>
          Revoke now
        </Button>
        <Button onClick={close}>Cancel</Button>
      </div>
    </Dialog>
  )
}
