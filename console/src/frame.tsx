// The frame around every screen: navigation, search, the change list, and the state of the change feed.
import { signal } from "@preact/signals"
import type { ComponentChildren } from "preact"
import { useEffect, useState } from "preact/hooks"
import { calls, type Call } from "./api"
import { Icon } from "./icons"
import { state } from "./live"
import { usePending } from "./parts/approvals"
import { Button, Dialog } from "./parts/basics"
import { Password } from "./parts/password"
import { Search, searching } from "./parts/search"
import { useDenied } from "./rights"
import { go, mayLeave, place } from "./router"
import { chooseConfiguration, configuration, configurations, leave, session } from "./session"
import { stagedCount } from "./staged"
import { toast } from "./notice"

/** The navigation: path, label, icon, and the key after g. */
const places: [to: string, word: string, icon: string, key: string][] = [
  ["/", "Overview", "layout-dashboard", "o"],
  ["/ui/space", "Space", "list-tree", "s"],
  ["/ui/find", "Find space", "locate-fixed", "p"],
  ["/ui/names", "Names", "globe", "n"],
  ["/ui/vlans", "VLANs", "network", "l"],
  ["/ui/servers", "Servers", "server", "v"],
  ["/ui/dhcp", "DHCP", "radio", "d"],
  ["/ui/discovery", "Discovery", "radar", "i"],
  ["/ui/fleet", "Fleet", "boxes", "f"],
  ["/ui/transactions", "Changes", "history", "h"],
  ["/ui/workflowRequests", "Approvals", "circle-check", "w"],
  ["/ui/access", "Users and rights", "users", "u"],
  ["/ui/staged", "Change list", "list-checks", "c"],
  ["/ui/bulk", "Bulk and CSV", "file-spreadsheet", "b"],
  ["/ui/events", "Events", "bell", "e"],
  ["/ui/all", "All objects", "settings", "a"],
]

/** The navigation entry of each collection that has no entry of its own. */
const belongs: Record<string, string> = {
  blocks: "/ui/space",
  networks: "/ui/space",
  addresses: "/ui/space",
  configurations: "/ui/space",
  map: "/ui/space",
  vlanGroups: "/ui/vlans",
  zones: "/ui/names",
  views: "/ui/names",
  resourceRecords: "/ui/names",
  deployments: "/ui/servers",
  ranges: "/ui/dhcp",
  leases: "/ui/dhcp",
  reconciliationPolicies: "/ui/discovery",
  reconciliationFindings: "/ui/discovery",
  observations: "/ui/discovery",
  macPools: "/ui/dhcp",
  clientClasses: "/ui/dhcp",
  users: "/ui/access",
  groups: "/ui/access",
  accessRights: "/ui/access",
  fleetRights: "/ui/access",
}

const helping = signal(false),
  curling = signal(false),
  menu = signal(false)

export function Frame({ children }: { children: ComponentChildren }) {
  useKeys()
  useTheme()
  const here = place.value.path.length ? (belongs[place.value.path[0]] ?? "/ui/" + place.value.path[0]) : "/"
  const why = useDenied(),
    visible = places.filter(([to]) => !why(to.slice("/ui/".length))),
    main = visible.slice(0, 4),
    pending = usePending()
  useEffect(() => {
    menu.value = false
  }, [place.value])
  return (
    <div class="frame">
      <a
        class="skip"
        href="#main"
        onClick={e => {
          e.preventDefault()
          document.getElementById("main")?.focus()
        }}
      >
        Skip to content
      </a>
      <header class="top">
        <a class="brand" href="/" aria-label="Portolan, overview">
          <img src="/ui/assets/icon.svg" width="22" height="22" alt="" />
          <span>Portolan</span>
        </a>
        <button
          class="searchbox"
          aria-label="Search"
          onClick={() => {
            searching.value = true
          }}
        >
          <Icon name="search" />
          <span>Search</span>
          <kbd>/</kbd>
        </button>
        <span class="grow" />
        {configurations.value.length > 0 && (
          <label class="configuration">
            <span class="hidden">Configuration</span>
            <select
              value={configuration.value ?? ""}
              onChange={e => {
                if (!mayLeave()) {
                  e.currentTarget.value = String(configuration.value)
                  return
                }
                chooseConfiguration(Number(e.currentTarget.value))
              }}
            >
              {configurations.value.map(c => (
                <option key={c.id} value={c.id}>
                  {c.name}
                </option>
              ))}
            </select>
          </label>
        )}
        <a class="staged" href="/ui/staged" aria-label={`Change list, ${stagedCount.value} staged`}>
          <Icon name="list-checks" />
          {stagedCount.value > 0 && <b>{stagedCount.value}</b>}
        </a>
        <Live />
        <button
          class="plain wide-only"
          title="Show this page's requests as curl"
          aria-label="Show as curl"
          onClick={() => {
            curling.value = true
          }}
        >
          <Icon name="terminal" />
        </button>
        <button
          class="plain wide-only"
          title="Keyboard shortcuts"
          aria-label="Keyboard shortcuts"
          onClick={() => {
            helping.value = true
          }}
        >
          <Icon name="keyboard" />
        </button>
        <Account />
      </header>
      <nav class="side" aria-label="Navigation">
        {visible.map(([to, word, icon]) => (
          <a key={to} href={to} aria-current={here === to ? "page" : undefined}>
            <Icon name={icon} size={17} />
            <span>{word}</span>
            {to === "/ui/workflowRequests" && pending > 0 && (
              <b class="count" aria-label={pending + " pending"}>
                {pending}
              </b>
            )}
          </a>
        ))}
      </nav>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
      <nav class="bottom" aria-label="Main pages">
        {main.map(([to, word, icon]) => (
          <a key={to} href={to} aria-current={here === to ? "page" : undefined}>
            <Icon name={icon} size={20} />
            <span>{word}</span>
          </a>
        ))}
        <button
          aria-expanded={menu.value}
          onClick={() => {
            menu.value = !menu.value
          }}
        >
          <Icon name="menu" size={20} />
          <span>More</span>
        </button>
      </nav>
      {menu.value && (
        <Dialog
          title="More"
          close={() => {
            menu.value = false
          }}
        >
          <nav class="more" aria-label="All pages">
            {visible.slice(4).map(([to, word, icon]) => (
              <a
                key={to}
                href={to}
                onClick={() => {
                  menu.value = false
                }}
              >
                <Icon name={icon} size={18} />
                {word}
              </a>
            ))}
            <button
              onClick={() => {
                menu.value = false
                curling.value = true
              }}
            >
              <Icon name="terminal" size={18} />
              Show as curl
            </button>
          </nav>
        </Dialog>
      )}
      {searching.value && <Search />}
      {helping.value && <Keys />}
      {curling.value && <Curl />}
    </div>
  )
}

/** The state of the change feed, as an icon with a label. */
function Live() {
  const [icon, word, says] = {
    live: ["circle-dot", "live", "The page shows changes as they happen."],
    starting: ["loader", "connecting", "Connecting to the change feed."],
    stale: ["triangle-alert", "stale", "Connection lost. The page may be out of date."],
    off: ["circle-slash", "not live", "You cannot follow all changes. Each page is loaded when you open it."],
  }[state.value]
  return (
    <span class={"live " + state.value} title={says} role="status">
      <Icon name={icon} size={14} />
      <span>{word}</span>
    </span>
  )
}

/** The theme: that of the system, light, or dark. */
const theme = signal(localStorage.getItem("portolan-theme") ?? "system")
function useTheme() {
  useEffect(() => {
    document.documentElement.dataset.theme = theme.value
    localStorage.setItem("portolan-theme", theme.value)
  }, [theme.value])
}

function Account() {
  const [open, setOpen] = useState(false),
    [password, setPassword] = useState(false)
  return (
    <>
      <button class="plain account" aria-label={"Account of " + session.value?.user.name} onClick={() => setOpen(true)}>
        <Icon name="users" />
        <span class="wide-only">{session.value?.user.name}</span>
      </button>
      {open && (
        <Dialog title={session.value?.user.name ?? ""} close={() => setOpen(false)}>
          <p class="muted">
            {session.value?.administrator
              ? "Administrator."
              : "Your access rights limit the data that you can view and change."}
            {session.value?.readOnly ? " This session is read-only." : ""}
          </p>
          <fieldset class="choice">
            <legend>Theme</legend>
            {[
              ["system", "System", "settings"],
              ["light", "Light", "sun"],
              ["dark", "Dark", "moon"],
            ].map(([value, word, icon]) => (
              <label key={value}>
                <input
                  type="radio"
                  name="theme"
                  value={value}
                  checked={theme.value === value}
                  onChange={() => {
                    theme.value = value
                  }}
                />
                <Icon name={icon} />
                {word}
              </label>
            ))}
          </fieldset>
          <div class="buttons">
            <a class="button" href={"/ui/users/" + session.value?.user.id} onClick={() => setOpen(false)}>
              My user and sessions
            </a>
            <a class="button" href="/ui/tokens" onClick={() => setOpen(false)}>
              My tokens
            </a>
            <Button
              onClick={() => {
                setOpen(false)
                setPassword(true)
              }}
            >
              Change password
            </Button>
            <Button
              icon="log-out"
              onClick={() => {
                if (mayLeave() && (!stagedCount.value || confirm("Signing out discards your change list. Sign out?")))
                  void leave()
              }}
            >
              Sign out of all tabs
            </Button>
          </div>
        </Dialog>
      )}
      {password && <Password close={() => setPassword(false)} />}
    </>
  )
}

/** One-letter keys, outside of fields. */
function useKeys() {
  useEffect(() => {
    let g = 0
    const fn = (e: KeyboardEvent) => {
      if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === "k") {
        e.preventDefault()
        searching.value = true
        return
      }
      const t = e.target as HTMLElement
      if (e.ctrlKey || e.metaKey || e.altKey || t.closest("input,textarea,select,dialog,[contenteditable]")) return
      if (Date.now() - g < 1500) {
        g = 0
        const to = places.find(p => p[3] === e.key)
        if (to) {
          e.preventDefault()
          go(to[0])
          return
        }
      }
      if (e.key === "g") g = Date.now()
      else if (e.key === "/") {
        e.preventDefault()
        setTimeout(() => {
          searching.value = true
        })
      } // after this key event, so that the key is not typed into the search
      else if (e.key === "?") helping.value = true
      else if (e.key === "u") document.querySelector<HTMLElement>(".toasts .toast:last-child button")?.focus()
    }
    addEventListener("keydown", fn)
    return () => removeEventListener("keydown", fn)
  }, [])
}

function Keys() {
  const keys: [string, string][] = [
    ["/ or Ctrl K", "search"],
    ["?", "show the keyboard shortcuts"],
    ...places.map(([, word, , key]): [string, string] => ["g " + key, word.toLowerCase()]),
    ["↑ ↓ Page Up Page Down Home End", "move in a table"],
    ["→ ←", "open and close a branch of the tree"],
    ["Enter", "open the selection"],
    ["e", "edit the selection"],
    ["n", "create inside the selection"],
    ["Del", "delete the selection"],
    ["Space", "select a row, or clear its selection"],
    ["Shift ↑ ↓", "select several rows"],
    ["Ctrl A", "select all rows"],
    ["a r", "accept or reject a finding of discovery"],
    ["u", "go to the button of the last message, such as Undo"],
    ["Esc", "close a window, or clear the selection"],
  ]
  return (
    <Dialog
      title="Keyboard shortcuts"
      close={() => {
        helping.value = false
      }}
      wide
    >
      <dl class="keys">
        {keys.map(([k, what]) => (
          <div key={k}>
            <dt>
              <kbd>{k}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}

/** Returns a request as a curl command. The user replaces $TOKEN with a token. */
export function asCurl(c: Call): string {
  const quoted = (t: string) => "'" + t.replaceAll("'", `'\\''`) + "'"
  const lines = ['curl -sg -H "Authorization: Bearer $TOKEN"']
  if (c.method !== "GET") lines.push("-X " + c.method)
  for (const [name, value] of Object.entries(c.headers)) lines.push("-H " + quoted(name + ": " + value))
  if (c.body !== undefined) lines.push("-H " + quoted("Content-Type: " + c.type), "--data-raw " + quoted(c.body))
  lines.push(quoted(location.origin + c.path))
  return lines.join(" ")
}

function Curl() {
  const copy = (text: string) =>
    navigator.clipboard?.writeText(text).then(
      () => toast("Copied."),
      () => toast("The browser blocks copying here. Select the text and copy it.", { bad: true }),
    )
  return (
    <Dialog
      title="Requests of this page as curl"
      close={() => {
        curling.value = false
      }}
      wide
    >
      <p class="muted">
        The latest requests of this page, newest first.{" "}
        <a
          href="/api/docs"
          onClick={() => {
            curling.value = false
          }}
        >
          API documentation
        </a>
        . The console uses the same API as your programs. Set TOKEN to one of your tokens (
        <code>portolan token create</code>).
      </p>
      <ol class="curl">
        {calls.value
          .filter(c => c.page === location.pathname)
          .map((c, i) => (
            <li key={i}>
              <code>{asCurl(c)}</code>
              <button class="plain" aria-label="Copy" onClick={() => copy(asCurl(c))}>
                <Icon name="copy" />
              </button>
            </li>
          ))}
      </ol>
    </Dialog>
  )
}
