// Small parts: chips, bars, boxes, buttons, dialogs, toasts.
import { signal } from "@preact/signals"
import type { ComponentChildren } from "preact"
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks"
import { arrived, place } from "../router"
import type { Problem } from "../api"
import { Icon } from "../icons"
import { number } from "../words"
import { toasts, dropToast } from "../notice"

/** The icon and tone of each state. The word is always shown, so colour never carries the meaning alone. */
const tones: Record<string, [icon: string, tone: string]> = {
  HEALTHY: ["circle-check", "good"],
  CONNECTED: ["circle-check", "good"],
  OK: ["circle-check", "good"],
  COMPLETED: ["circle-check", "good"],
  COMPLETED_WITH_WARNINGS: ["triangle-alert", "warn"],
  CURRENT: ["circle-check", "good"],
  NOT_DEPLOYED: ["circle-alert", "warn"],
  BEHIND: ["loader", "warn"],
  SUCCESS: ["circle-check", "good"],
  INFORMATION: ["circle-dot", "calm"],
  LOGGED_IN: ["circle-check", "good"],
  UNHEALTHY: ["circle-alert", "bad"],
  FAILED: ["circle-alert", "bad"],
  DEPLOY_FAILED: ["circle-alert", "bad"],
  UPDATE_FAILED: ["circle-alert", "bad"],
  ERROR: ["circle-alert", "bad"],
  CRITICAL: ["circle-alert", "bad"],
  APPLICATION_UNHEALTHY: ["circle-alert", "bad"],
  NOT_CONNECTED: ["circle-slash", "bad"],
  WARNING: ["triangle-alert", "warn"],
  WARN: ["triangle-alert", "warn"],
  "COMMUNICATIONS-INTERRUPTED": ["triangle-alert", "warn"],
  "PARTNER-DOWN": ["circle-alert", "bad"],
  WAITING_FOR_PROVISIONING: ["loader", "warn"],
  WAITING_FOR_REGISTRATION: ["loader", "warn"],
  DEPLOYING: ["loader", "calm"],
  RUNNING: ["loader", "calm"],
  QUEUED: ["loader", "calm"],
  UPDATE_QUEUED: ["loader", "calm"],
  UPDATE_RUNNING: ["loader", "calm"],
  STATIC: ["circle-dot", "used"],
  RESERVED: ["map-pin", "held"],
  GATEWAY: ["waypoints", "calm"],
  DHCP_RESERVED: ["link", "held"],
  DHCP_ALLOCATED: ["radio", "lease"],
  DHCP_FREE: ["circle-slash", "calm"],
  UNASSIGNED: ["circle-slash", "calm"],
}

/** A state, as an icon and a word. */
export function State({ of }: { of: string | null | undefined }) {
  if (!of) return <span class="muted">none</span>
  const [icon, tone] = Object.hasOwn(tones, of) ? tones[of] : ["circle-dot", "calm"]
  return (
    <span class={"chip " + tone}>
      <Icon name={icon} size={13} />
      {words(of)}
    </span>
  )
}

/** NOT_CONNECTED as "not connected", PARTNER-DOWN as "partner down", and DHCP_RESERVED as "DHCP reserved". */
export function words(constant: string) {
  return /^[A-Z0-9]+(_[A-Z0-9]+)+$|^[A-Z]+(-[A-Z]+)+$|^[A-Z]{4,}$/.test(constant) &&
    !/^(NSAP-PTR|NXT|SINK)$/.test(constant)
    ? lowerCase(constant)
    : constant
}

/** The words of a constant in lower case, except for acronyms. */
function lowerCase(constant: string) {
  return constant
    .split(/[_-]/)
    .map(w => (acronyms.test(w) ? w : w.toLowerCase()))
    .join(" ")
}

/** Words that stay in capitals within a constant. */
const acronyms =
  /^(AAAA|ACL|AFSDB|API|CERT|CHAP|CNAME|DDNS|DNAME|DNSKEY|DHCP|DNS|DUID|FTP|GSS|GUI|HA|HINFO|HSM|HTTP|HTTPS|IP|ISDN|LDAP|MAC|MD5|NAPTR|NSAP|OPENLDAP|PAP|POST|RRSIG|S3|SAML|SFTP|SMTP|SNMP|SSHFP|SSO|SVCB|TACACS|TFTP|TLSA|TSIG|UDP|VLAN)$/

/** A value of an enumeration for a select: DHCP_RESERVED as "DHCP reserved". Names of types, algorithms and the like stay. */
export function choice(constant: string) {
  return /^[A-Z]+(_[A-Z0-9]+)*$/.test(constant) && !/\d[A-Z]|[A-Z]\d/.test(constant) ? lowerCase(constant) : constant
}

/** Utilization as a bar and a percentage. */
export function Use({ part, of, label }: { part: number; of: number; label?: string }) {
  const percent = of > 0 ? Math.min(100, (100 * part) / of) : 0
  const text =
    percent > 0 && percent < 1 ? "<1 %" : percent > 99 && percent < 100 ? ">99 %" : Math.round(percent) + " %"
  return (
    <span class="use" title={label ?? `${number(part)} of ${number(of)}`}>
      <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
        <rect class="bar-all" width="100" height="8" rx="2" />
        <rect
          class={percent >= 90 ? "bar-full" : percent >= 75 ? "bar-high" : "bar-part"}
          width={percent > 0 ? Math.max(percent, 2) : 0}
          height="8"
          rx="2"
        />
      </svg>
      <span class="num">{text}</span>
    </span>
  )
}

/** Advances every half minute, so that relative times are updated. */
const minute = signal(0)
setInterval(() => {
  if (!document.hidden) minute.value++
}, 30_000)

/** A relative time; the tooltip shows the exact time. */
export function When({ at }: { at: string | number | null | undefined }) {
  minute.value
  if (!at) return <span class="muted">never</span>
  const t = new Date(at),
    ago = (Date.now() - t.getTime()) / 1000
  const text =
    ago < 0
      ? t.toLocaleString("sv").slice(0, 16)
      : ago < 60
        ? "just now"
        : ago < 3600
          ? Math.floor(ago / 60) + " min ago"
          : ago < 86400
            ? Math.floor(ago / 3600) + " h ago"
            : t.toLocaleString("sv").slice(0, 16)
  return (
    <time dateTime={t.toISOString()} title={t.toLocaleString("sv")}>
      {text}
    </time>
  )
}

/** An error message with its code and fields. */
export function Trouble({ problem, retry }: { problem: Problem; retry?: () => void }) {
  return (
    <div class="box bad" role="alert">
      <Icon name="circle-alert" />
      <div>
        <p>
          <strong>
            {problem.status === 403
              ? "You do not have permission."
              : problem.status === 404
                ? "Not found."
                : problem.status === 0
                  ? "No answer."
                  : "Refused."}
          </strong>{" "}
          <LinkedText text={problem.message} />
        </p>
        <p class="muted small">
          {problem.code}
          {problem.fields?.length ? " · " + problem.fields.join(", ") : ""}
        </p>
        {retry && (
          <p>
            <button class="small" onClick={retry}>
              Try again
            </button>
          </p>
        )}
      </div>
    </div>
  )
}

/** Removes the advice to send a header: the window has a button for it where that helps. */
const withoutHeaders = (text: string) =>
  text.replace(/,? (or (send|set)|in) (the header )?x-(bcn|portolan)-[a-z-]+(: \w+)?( to create it)?/g, "")

/** A sentence of the manager, with links to the transactions that it names. */
function LinkedText({ text }: { text: string }) {
  return (
    <>
      {withoutHeaders(text)
        .split(/\b(transactions? \d+)/)
        .map((part, i) =>
          i % 2 ? (
            <a key={i} href={"/ui/transactions/" + part.replace(/\D+/, "")}>
              {part}
            </a>
          ) : (
            part
          ),
        )}
    </>
  )
}

/** The placeholder of an empty list. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <Icon name="circle-slash" size={22} />
      <p>
        <strong>{title}</strong>
      </p>
      {children && <div>{children}</div>}
    </div>
  )
}

export function Loading({ what }: { what?: string }) {
  return (
    <p class="muted loading" aria-live="polite">
      {"Loading" + (what ? " " + what : "") + " …"}
    </p>
  )
}

/** The head of a page: title, kind and actions. */
export function Head({
  title,
  kind,
  children,
  crumbs,
}: {
  title: ComponentChildren
  kind?: string
  children?: ComponentChildren
  crumbs?: ComponentChildren
}) {
  const ref = useRef<HTMLHeadingElement>(null)
  // After a navigation the focus moves to the heading instead of the top of the document.
  useEffect(() => {
    if (arrived() && (!document.activeElement || document.activeElement === document.body))
      ref.current?.focus({ preventScroll: true })
  }, [])
  useEffect(() => {
    document.title = (ref.current?.innerText ?? "").trim() + " · Portolan"
  })
  return (
    <header class="head">
      {crumbs && (
        <nav class="crumbs" aria-label="Breadcrumbs">
          {crumbs}
        </nav>
      )}
      <div class="headline">
        <h1 ref={ref} tabIndex={-1}>
          {title}
        </h1>
        {kind && <span class="kind">{kind}</span>}
        <span class="grow" />
        <div class="actions">{children}</div>
      </div>
    </header>
  )
}

/** A modal dialog that keeps the keyboard focus until it is closed. */
export function Dialog({
  title,
  children,
  close,
  wide,
  discards,
}: {
  title: string
  children: ComponentChildren
  close: () => void
  wide?: boolean
  /** A click outside of the window also closes it after the user has typed something. */
  discards?: boolean
}) {
  const ref = useRef<HTMLDialogElement>(null),
    typed = useRef(false),
    id = useId()
  useLayoutEffect(() => {
    const d = ref.current!
    const before = document.activeElement as HTMLElement | null
    d.showModal()
    const first = d.querySelector<HTMLElement>("[autofocus], input:not([type=hidden]), select, textarea")
    first?.focus()
    return () => {
      d.close()
      before?.focus?.()
    }
  }, [])
  return (
    <dialog
      ref={ref}
      class={wide ? "wide" : ""}
      aria-labelledby={id}
      onCancel={e => {
        e.preventDefault()
        close()
      }}
      onInput={() => (typed.current = true)}
      onMouseDown={e => {
        if (e.target === ref.current && (discards || !typed.current)) close() // a stray click keeps the input
      }}
    >
      <div class="dialog">
        <div class="dialog-head">
          <h2 id={id}>{title}</h2>
          <button class="plain" aria-label="Close" onClick={close}>
            <Icon name="x" />
          </button>
        </div>
        {children}
      </div>
    </dialog>
  )
}

/** A button with an icon. */
export function Button({
  icon,
  children,
  primary,
  danger,
  ...rest
}: { icon?: string; children?: ComponentChildren; primary?: boolean; danger?: boolean } & Record<string, any>) {
  return (
    <button type="button" class={primary ? "primary" : danger ? "danger" : ""} {...rest}>
      {icon && <Icon name={icon} />}
      {children}
    </button>
  )
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(t => (
        <div key={t.id} class={"toast" + (t.bad ? " bad" : "")}>
          <Icon name={t.bad ? "circle-alert" : "circle-check"} />
          <span>{t.text}</span>
          {t.action && (
            <button
              onClick={() => {
                t.action!.run()
                dropToast(t.id)
              }}
            >
              <Icon name="undo-2" size={14} />
              {t.action.label}
            </button>
          )}
          <button class="plain" aria-label="Close this message" onClick={() => dropToast(t.id)}>
            <Icon name="x" size={14} />
          </button>
        </div>
      ))}
    </div>
  )
}

/** A labelled field with its hint or its error below. */
export function Field({
  label,
  hint,
  wrong,
  children,
}: {
  label: string
  hint?: string
  wrong?: string
  children: (id: string, described?: string) => ComponentChildren
}) {
  const id = useId()
  return (
    <div class={"field" + (wrong ? " wrong" : "")}>
      <label for={id}>{label}</label>
      {children(id, hint || wrong ? id + "d" : undefined)}
      {(wrong || hint) && (
        <p id={id + "d"} class={wrong ? "fault" : "hint"}>
          {wrong ?? hint}
        </p>
      )}
    </div>
  )
}

/** Tabs. The caller keeps the selected tab in the URL or in the page's state. */
export function Tabs({
  tabs,
  chosen,
  choose,
}: {
  tabs: [key: string, label: string][]
  chosen: string
  choose: (key: string) => void
}) {
  const list = useRef<HTMLDivElement>(null)
  useLayoutEffect(() => {
    // in a narrow window the selected tab may be outside of the visible part
    const all = list.current?.getBoundingClientRect(),
      tab = list.current?.querySelector("[aria-selected=true]")?.getBoundingClientRect()
    if (all && tab) list.current!.scrollLeft += Math.min(0, tab.left - all.left) + Math.max(0, tab.right - all.right)
  }, [chosen, tabs.length])
  const wanted = place.value.query.get("tab"),
    unknown = wanted && wanted === chosen && !tabs.some(([key]) => key === wanted)
  return (
    <>
      {unknown && (
        <p class="box bad" role="status">
          This page has no tab “{wanted}”. The first tab is shown.
        </p>
      )}
      <div class="tabs" role="tablist" ref={list}>
        {tabs.map(([key, label], i) => (
          <button
            key={key}
            role="tab"
            aria-selected={key === chosen || (!!unknown && i === 0)}
            tabIndex={key === chosen || (unknown && i === 0) ? 0 : -1}
            onClick={() => choose(key)}
            onKeyDown={e => {
              const step = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0
              if (!step) return
              const next = (i + step + tabs.length) % tabs.length
              choose(tabs[next][0])
              ;((e.currentTarget as HTMLElement).parentElement!.children[next] as HTMLElement).focus()
            }}
          >
            {label}
          </button>
        ))}
      </div>
    </>
  )
}

/** Returns the value of an input after it has stayed the same for a while. */
export function useSettled<T>(value: T, ms: number): T {
  const [settled, setSettled] = useState(value)
  useEffect(() => {
    const t = setTimeout(() => setSettled(value), ms)
    return () => clearTimeout(t)
  }, [value, ms])
  return settled
}
