// Address space as a tree: blocks, networks, and the free space between them.
import type { ComponentChildren } from "preact"
import { useEffect, useMemo, useRef, useState } from "preact/hooks"
import { get, query, unattended, type Page, type Problem, type Resource } from "../api"
import { problemOf, useResource, type Rows } from "../data"
import { Icon } from "../icons"
import { hrefOf, kind } from "../links"
import { onChanges } from "../live"
import { Button, Dialog, Empty, Field, Head, Loading, Tabs, Trouble, Use } from "../parts/basics"
import { Create, Delete, Edit } from "../parts/edit"
import { Grid } from "../parts/grid"
import { SpaceMap } from "../parts/map"
import { faultOf } from "../parts/form"
import { Preview } from "../parts/preview"
import { SelectionBar, useSelection } from "../parts/selection"
import { SaveShown } from "../parts/tools"
import { useColumns } from "../parts/userfields"
import { anything, useMay, type May } from "../rights"
import { go, place, setQuery } from "../router"
import { useSchema } from "../schema"
import { configuration, configurations, session } from "../session"
import {
  address,
  amount,
  compare,
  firstPrefix,
  gaps,
  parseAddress,
  parseSpan,
  prefixes,
  prefixLength,
  size,
  span,
  usedOf,
  type Span,
} from "../space"
import { Below, Crumbs, Fields, Further, Value } from "./generic"
import { number, fieldName } from "../words"
import { type Wanted } from "../staged"

/** The direct children of a block or a configuration. */
export interface Children {
  list: Resource[]
  more: boolean
  /** The last address that the list covers, if more children follow. */
  until?: bigint
}
const pageSize = 1000

/** The root of the tree for users without access to a whole configuration: all visible address space. */
const visibleRoot = "seen"

/** The maximum number of pages that are read to find blocks and networks without a visible parent. */
const maxPages = 20

/**
 * Returns the ids of visible blocks or networks without a visible parent. A user with access to a single network does not see the block above
 * it. Users with access to the whole configuration have no such entries.
 */
async function withoutParent(
  what: string,
  within: string | undefined,
  signal?: AbortSignal,
): Promise<{ ids: number[]; more: boolean }> {
  const ids: number[] = []
  let next: string | undefined = what + query({ limit: pageSize, fields: "id,_links.up,_links.next", filter: within })
  for (let n = 0; next && n < maxPages; n++) {
    const page: Page = await get<Page>(next, { signal, quiet: true })
    for (const r of page.data) if (!r._links?.up) ids.push(r.id)
    next = page._links?.next?.href
  }
  return { ids, more: !!next }
}

/**
 * Reads the direct children in address order. For a configuration and for the visible root, the result includes blocks and networks without a
 * visible parent.
 */
export async function childrenOf(parent: string, limit: number, signal?: AbortSignal): Promise<Children> {
  const none = Promise.resolve({ data: [], count: 0 } as Page),
    inBlock = parent.startsWith("blocks/")
  const read = (path: string, filter?: string) =>
    get<Page>(path + query({ limit, orderBy: "range", filter }), { signal, quiet: limit > pageSize })
  const [blocks, networks] = await Promise.all([
    parent === visibleRoot ? none : read(parent + "/blocks"),
    inBlock ? read(parent + "/networks") : none,
  ])
  const found = new Map([...blocks.data, ...networks.data].map(r => [r.id, r]))
  let more = false
  if (!inBlock && !session.peek()?.administrator) {
    const within = parent === visibleRoot ? undefined : "configuration.id:" + parent.split("/")[1]
    await Promise.all(
      ["blocks", "networks"].map(async what => {
        const roots = await withoutParent(what, within, signal),
          ids = roots.ids.filter(id => !found.has(id)).slice(0, limit)
        more ||= roots.more || ids.length === limit
        for (let i = 0; i < ids.length; i += 100)
          for (const r of (await read(what, `id:in(${ids.slice(i, i + 100).join()})`)).data) found.set(r.id, r)
      }),
    )
  }
  const list = [...found.values()].map(r => ({ r, s: parseSpan(r.range) })).filter(x => x.s)
  list.sort((a, b) => compare(a.s!, b.s!))
  const cut = [blocks, networks]
    .filter(p => p.count >= limit)
    .map(p => parseSpan(p.data[p.data.length - 1]?.range)?.high ?? 0n)
  return {
    list: list.map(x => x.r),
    more: more || cut.length > 0,
    until: cut.length ? cut.reduce((a, b) => (a < b ? a : b)) : undefined,
  }
}

type Row = { depth: number } & (
  | { is: "resource"; r: Resource; open?: boolean; opens: boolean; parent: string }
  | { is: "gap"; s: Span; block: Resource }
  | { is: "more"; parent: string }
  | { is: "wait"; parent: string }
  | { is: "trouble"; problem: Problem; parent: string }
)

/** How long address changes are collected before the tree reloads, in milliseconds. They change only the utilization bars. */
const addressDelay = 3000

/** A tree that loads a branch when it is opened. The URL holds the open branches. */
function useTree(root: string, whole: Resource | null, showFree: boolean) {
  const known = useRef(new Map<string, Children | Problem>()),
    asked = useRef(new Map<string, AbortController>()),
    limits = useRef(new Map<string, number>())
  const [turn, setTurn] = useState(0)
  const open = useMemo(() => new Set((place.value.query.get("open") ?? "").split(".").filter(Boolean)), [place.value])
  const read = (parent: string, byItself = false) => {
    asked.current.get(parent)?.abort()
    const abort = new AbortController()
    if (byItself) unattended.add(abort.signal)
    asked.current.set(parent, abort)
    childrenOf(parent, limits.current.get(parent) ?? pageSize, abort.signal)
      .then(
        c => known.current.set(parent, c),
        e => {
          if (!abort.signal.aborted) known.current.set(parent, problemOf(e))
        },
      )
      .finally(() => {
        if (asked.current.get(parent) === abort) {
          asked.current.delete(parent)
          setTurn(n => n + 1)
        }
      })
  }
  const { rows, shown } = useMemo(() => {
    const list: Row[] = [],
      shown: string[] = []
    const add = (parent: string, block: Resource | null, depth: number) => {
      shown.push(parent)
      const c = known.current.get(parent)
      if (!c) {
        list.push({ is: "wait", parent, depth })
        return
      }
      if (!("list" in c)) {
        list.push({ is: "trouble", problem: c, parent, depth })
        return
      }
      const here = block ? parseSpan(block.range) : null
      const covered = here && c.until !== undefined ? { ...here, high: c.until } : here
      const free =
        covered && showFree
          ? gaps(
              covered,
              c.list.map(r => parseSpan(r.range)!).filter(s => s.low <= covered.high),
            )
          : []
      const all: { s: Span; row: () => void }[] = [
        ...free.map(s => ({
          s,
          row: () => {
            list.push({ is: "gap", s, block: block!, depth })
          },
        })),
        ...c.list.map(r => ({
          s: parseSpan(r.range)!,
          row: () => {
            const opens = r.type.endsWith("Block"),
              isOpen = opens && open.has(String(r.id))
            list.push({ is: "resource", r, opens, open: isOpen, depth, parent })
            if (isOpen) add("blocks/" + r.id, r, depth + 1)
          },
        })),
      ].sort((a, b) => compare(a.s, b.s))
      for (const x of all) x.row()
      if (c.more) list.push({ is: "more", parent, depth })
    }
    add(root, whole, 0)
    return { rows: list, shown }
  }, [root, whole, open, turn, showFree])
  // Open branches are loaded. Closed branches are discarded and loaded again when they are reopened.
  const inSight = useRef(shown)
  inSight.current = shown
  useEffect(() => {
    for (const parent of shown) if (!known.current.has(parent) && !asked.current.has(parent)) read(parent)
    for (const parent of known.current.keys()) if (!shown.includes(parent)) known.current.delete(parent)
  }, [shown.join()])
  const reload = (byItself = false) => {
    for (const parent of inSight.current) read(parent, byItself)
  }
  useEffect(() => {
    const ends = [
      onChanges(["blocks", "networks"], () => reload(true)),
      onChanges(["addresses"], () => reload(true), addressDelay),
    ]
    return () => {
      for (const end of ends) end()
      for (const a of asked.current.values()) a.abort()
    }
  }, [root])
  const toggle = (id: number, to?: boolean) => {
    const next = new Set(open),
      key = String(id)
    if (to ?? !next.has(key)) next.add(key)
    else next.delete(key)
    setQuery({ open: [...next].join(".") })
  }
  return {
    rows,
    toggle,
    reload,
    read,
    more: (parent: string) => {
      limits.current.set(parent, (limits.current.get(parent) ?? pageSize) + 4 * pageSize)
      read(parent)
    },
  }
}

export function Space() {
  const c = configuration.value
  const [making, setMaking] = useState(false),
    may = useMay(c === null ? null : "configurations/" + c)
  if (c === null)
    return (
      <>
        <Head title="Space" />
        <p class="muted">You have access to parts of this configuration. This is the address space visible to you.</p>
        <Tree root={visibleRoot} whole={null} />
      </>
    )
  return (
    <>
      <Head title="Space" kind={configurations.value.find(x => x.id === c)?.name ?? ""}>
        {may.add && (
          <Button icon="plus" primary onClick={() => setMaking(true)}>
            New block
          </Button>
        )}
      </Head>
      <Tree key={c} root={"configurations/" + c} whole={null} may={may.change || may.add ? anything : may} />
      {making && (
        <Create
          path={`configurations/${c}/blocks`}
          makes={{ n: { IPv4Block: ["type", "range"], IPv6Block: ["type", "range"] } }}
          only={["range", "name"]}
          close={() => setMaking(false)}
        />
      )}
    </>
  )
}

type Act = { act: "edit" | "delete" | "split" | "merge" | "move" | "block" | "network" | "gap" | "menu"; row: Row }

export function Tree({ root, whole, may = anything }: { root: string; whole: Resource | null; may?: May }) {
  const showFree = place.value.query.get("free") !== "0"
  const tree = useTree(root, whole, showFree),
    [doing, setDoing] = useState<Act | null>(null)
  const schema = useSchema(),
    listed: Rows<Resource> = {
      path: null,
      parameters: {},
      at: () => undefined,
      reload: () => tree.reload(),
      load: async () => {},
      read: async () => [],
    },
    selection = useSelection(listed),
    resources = (list: Row[]) => list.flatMap(row => (row.is === "resource" ? [row.r] : []))
  useEffect(() => {
    // Rows of a closed branch are not shown, so a change must not apply to them. A branch that is being read again keeps its rows.
    if (tree.rows.some(r => r.is === "trouble" || r.is === "wait")) return
    const there = new Set(resources(tree.rows).map(r => r.id)),
      hidden = [...selection.rows.values()].filter(r => !there.has(r.id))
    if (hidden.length) selection.set(hidden, false)
  }, [tree.rows])
  const close = () => setDoing(null),
    done = () => {
      close()
      tree.reload()
    }
  const keys = (e: KeyboardEvent, row: Row | undefined) => {
    if (!row) return
    if (!may.change && !e.key.startsWith("Arrow")) return
    if (row.is === "resource" && row.opens && (e.key === "ArrowRight" || e.key === "ArrowLeft")) {
      e.preventDefault()
      tree.toggle(row.r.id, e.key === "ArrowRight")
    } else if (row.is === "resource" && e.key === "e") {
      e.preventDefault()
      setDoing({ act: "edit", row })
    } else if (row.is === "resource" && e.key === "n") {
      e.preventDefault()
      setDoing({ act: row.opens ? "network" : "menu", row })
    } else if (row.is === "resource" && e.key === "Delete") {
      e.preventDefault()
      setDoing({ act: "delete", row })
    } else if (row.is === "gap" && (e.key === "n" || e.key === "Enter")) {
      e.preventDefault()
      setDoing({ act: "gap", row })
    }
  }
  const indent = (depth: number) => ({ paddingLeft: `calc(${depth} * var(--indent))` })
  const { columns, chooser } = useColumns(
    "space",
    schema,
    ["IPv4Block", "IPv4Network", "IPv6Block", "IPv6Network"],
    [
      { key: "range", title: "Range", width: "minmax(15rem,2fr)", narrow: "minmax(0,5fr)", cell: r => r.range },
      { key: "name", title: "Name", narrow: "minmax(0,3fr)", cell: r => <span class="cut">{r.name}</span> },
      { key: "use", title: "Use", width: "9rem", narrow: "2.7rem", cell: r => <UseOf r={r} /> },
      { key: "size", title: "Addresses", width: "13rem", number: true, minor: true, cell: r => <UsedOf r={r} /> },
      {
        key: "location",
        title: "Location",
        minor: true,
        cell: r => r.location && <span class="cut">{r.location.name}</span>,
      },
      { key: "acts", title: "", width: "7rem", narrow: "2.6rem", cell: () => null },
    ],
    (f, r) => <Value field={f} value={r[f.n]} r={r} />,
    fieldName,
  )
  // Custom cells by column. Rows for free space have no other cells.
  const own: Record<string, (row: Row) => ComponentChildren> = {
    range: row => (
      <span class="tree-cell" style={indent(row.depth)}>
        {row.is === "resource" ? (
          <>
            {row.opens ? (
              <button
                class="plain twist"
                tabIndex={-1}
                aria-label={(row.open ? "Close " : "Open ") + row.r.range}
                onClick={() => tree.toggle(row.r.id)}
              >
                <Icon name={row.open ? "chevron-down" : "chevron-right"} size={15} />
              </button>
            ) : (
              <span class="twist" />
            )}
            <Icon name={row.opens ? "boxes" : "network"} size={15} class={row.opens ? "block" : "net"} />
            <a class="mono" tabIndex={-1} href={hrefOf(row.r)}>
              {row.r.range}
            </a>
          </>
        ) : row.is === "gap" ? (
          <>
            <span class="twist" />
            <Icon name="circle-slash" size={14} class="muted" />
            <span class="mono free">{span(row.s)}</span>
          </>
        ) : row.is === "more" ? (
          <button class="small" onClick={() => tree.more(row.parent)}>
            More
          </button>
        ) : row.is === "wait" ? (
          <span class="muted loading">Loading …</span>
        ) : (
          <span class="bad-text">
            {row.problem.message}{" "}
            <button class="small" onClick={() => tree.read(row.parent)}>
              Try again
            </button>
          </span>
        )}
      </span>
    ),
    acts: row =>
      !may.change ? null : row.is === "gap" ? (
        <button
          class="small"
          tabIndex={-1}
          aria-label={"Create here: " + span(row.s)}
          onClick={() => setDoing({ act: "gap", row })}
        >
          <Icon name="plus" size={14} />
          <span class="wide-only">Create here</span>
        </button>
      ) : row.is === "resource" ? (
        <button
          class="plain"
          tabIndex={-1}
          aria-label={"Actions for " + row.r.range}
          onClick={() => setDoing({ act: "menu", row })}
        >
          <Icon name="ellipsis-vertical" />
        </button>
      ) : null,
  }
  const ofGap: Record<string, (s: Span) => ComponentChildren> = {
    name: () => <span class="free">free</span>,
    size: s => amount(size(s)),
  }
  return (
    <>
      <div class="tools">
        <label class="inline">
          <input
            type="checkbox"
            checked={showFree}
            onChange={e => setQuery({ free: e.currentTarget.checked ? null : "0" })}
          />
          Show free space
        </label>
        <span class="grow" />
        {chooser}
        <SaveShown name="space" columns={columns} list={resources(tree.rows)} />
      </div>
      <SelectionBar
        selection={selection}
        rows={listed}
        collection="networks"
        c={schema?.collections.networks}
        may={may}
      />
      <Grid<Row>
        select={{
          has: row => row.is === "resource" && selection.rows.has(row.r.id),
          can: row => row.is === "resource",
          size: selection.rows.size,
          label: row => (row.is === "resource" ? row.r.range! : ""),
          set: (list, on) => selection.set(resources(list), on),
          all: () => selection.set(resources(tree.rows), true),
          clear: selection.clear,
          range: (a, b) => selection.set(resources(tree.rows.slice(Math.min(a, b), Math.max(a, b) + 1)), true),
        }}
        tree
        label="Address space"
        count={tree.rows.length}
        at={i => tree.rows[i]}
        id={row =>
          row.is === "resource"
            ? row.r.id
            : row.is + row.depth + ("s" in row ? span(row.s) : "parent" in row ? row.parent : "")
        }
        open={row => {
          if (row.is === "resource") go(hrefOf(row.r))
          else if (row.is === "more") tree.more(row.parent)
        }}
        onKey={keys}
        attributes={row => ({
          "aria-level": row.depth + 1,
          ...(row.is === "resource" && row.opens ? { "aria-expanded": row.open } : {}),
        })}
        empty={
          may.add ? (
            <Empty title="No address space yet.">
              Create a block for the space that you manage, such as 10.0.0.0/8.
            </Empty>
          ) : (
            <Empty title="No address space visible to you." />
          )
        }
        columns={columns.map(c => ({
          ...c,
          cell: (row: Row, i: number) =>
            own[c.key]?.(row) ??
            (row.is === "resource" ? c.cell(row.r, i) : row.is === "gap" ? ofGap[c.key]?.(row.s) : null),
        }))}
      />
      {doing?.act === "menu" && doing.row.is === "resource" && (
        <Menu r={doing.row.r} close={close} pick={a => setDoing({ act: a, row: doing.row })} />
      )}
      {doing?.act === "gap" && doing.row.is === "gap" && (
        <UseGap s={doing.row.s} block={doing.row.block} close={close} done={done} />
      )}
      {doing && doing.row.is === "resource" && (
        <Doing act={doing.act} r={doing.row.r} parent={doing.row.parent} close={close} done={done} />
      )}
    </>
  )
}

/** The utilization of a block or a network. */
export function UseOf({ r }: { r: Resource }) {
  const u = useOf(r)
  return u ? <Use part={u.used} of={u.all} label={u.says} /> : <span class="muted">—</span>
}

/** Returns the number of used addresses of a block or a network; null if it is unknown. */
function useOf(r: Resource): { used: number; all: number; says?: string } | null {
  if (!r.usagePercentage) return r.usage ? usedOf(r) : null
  const used = r.usagePercentage.addressAllocation.addresses,
    all = Number(size(parseSpan(r.range)!))
  return {
    used,
    all,
    says: `${number(used)} of ${number(all)} in use, ${number(r.usagePercentage.networkAllocation.addresses)} in networks`,
  }
}

/** The utilization in numbers. */
function UsedOf({ r }: { r: Resource }) {
  const u = useOf(r)
  return (
    <>
      {u ? number(u.used) + " of " : ""}
      {u ? number(u.all) : amount(size(parseSpan(r.range)!))}
    </>
  )
}

/** The dialogs for the actions on a block or a network. */
export function Doing({
  act,
  r,
  parent,
  close,
  done,
}: {
  act: string
  r: Resource
  parent: string
  close: () => void
  done: () => void
}) {
  const v = r.range!.includes(":") ? "IPv6" : "IPv4"
  switch (act) {
    case "edit":
      return (
        <Edit
          r={r}
          only={["name", "range", "location", "gateway", "lowWaterMark", "highWaterMark"]}
          close={close}
          done={done}
        />
      )
    case "delete":
      return <Delete r={r} close={close} done={done} />
    case "block":
      return (
        <Create
          path={`blocks/${r.id}/blocks`}
          makes={{ n: { [v + "Block"]: ["type", "range"] } }}
          only={["range", "name", "location"]}
          close={close}
          done={done}
        />
      )
    case "network":
      return (
        <Create
          path={`blocks/${r.id}/networks`}
          makes={{ n: { [v + "Network"]: ["type", "range"] } }}
          only={["range", "name", "location"]}
          values={{ range: v === "IPv4" ? "/24" : "/64" }}
          close={close}
          done={done}
        />
      )
    case "split":
      return <Split r={r} parent={parent} close={close} done={done} />
    case "merge":
      return <Merge r={r} parent={parent} close={close} done={done} />
    case "move":
      return <Move r={r} close={close} done={done} />
  }
  return null
}

export function Menu({ r, close, pick }: { r: Resource; close: () => void; pick: (act: Act["act"]) => void }) {
  const block = r.type.endsWith("Block"),
    may = useMay(hrefOf(r).replace(/^\/ui\//, ""))
  // A split or a merge changes the parent, which must be visible to the user.
  const v6 = r.range!.includes(":") // the published API splits and merges IPv4 only
  const allowed = (a: string) =>
    v6 && (a === "split" || a === "merge")
      ? false
      : a === "network" || a === "block"
        ? may.add
        : a === "delete"
          ? may.remove
          : may.change && ((a !== "merge" && (a !== "split" || block)) || !!r._links?.up)
  const acts: [Act["act"], string, string, string][] = [
    ...(block
      ? ([
          ["network", "plus", "New network here", "n"],
          ["block", "plus", "New block here", ""],
        ] as [Act["act"], string, string, string][])
      : []),
    ["edit", "pencil", "Change or resize", "e"],
    ["split", "scissors", "Split", ""],
    ["merge", "merge", "Merge with neighbours", ""],
    ["move", "move", "Move", ""],
    ["delete", "trash-2", "Delete", "Del"],
  ]
  return (
    <Dialog title={r.range + (r.name ? " · " + r.name : "")} close={close}>
      <div class="menu">
        <a class="button" href={hrefOf(r)} onClick={close}>
          <Icon name="chevron-right" />
          Open
        </a>
        <a class="button" href={hrefOf(r) + "/map"} onClick={close}>
          <Icon name="map" />
          Map
        </a>
        {acts
          .filter(([a]) => allowed(a))
          .map(([a, icon, word, key]) => (
            <Button key={a} icon={icon} onClick={() => pick(a)}>
              {word}
              <span class="grow" />
              {key && <kbd>{key}</kbd>}
            </Button>
          ))}
      </div>
    </Dialog>
  )
}

/** Creates a network or a block in a gap. */
function UseGap({ s, block, close, done }: { s: Span; block: Resource; close: () => void; done: () => void }) {
  const v = s.v6 ? "IPv6" : "IPv4",
    largest = prefixes(s).reduce((a, b) => (size(b) > size(a) ? b : a)),
    wide = prefixLength(largest)!
  const [as, setAs] = useState<"Network" | "Block">("Network"),
    [length, setLength] = useState(Math.min(Math.max(wide, s.v6 ? 64 : 24), s.v6 ? 128 : 32)),
    [name, setName] = useState(""),
    [from, setFrom] = useState("")
  const first = from ? parseAddress(from) : null,
    within = from
      ? first && first.v6 === s.v6 && first.n >= s.low && first.n <= s.high
        ? { ...s, low: first.n }
        : null
      : s
  const at = within && firstPrefix(within, length)
  const wanted: Wanted | null = at
    ? {
        method: "POST",
        path: `blocks/${block.id}/${as === "Network" ? "networks" : "blocks"}`,
        body: { type: v + as, range: span(at), ...(name ? { name } : {}) },
        says: `Created ${kind(v + as)} ${span(at)}.`,
      }
    : null
  return (
    <Preview title={"Create in " + span(s)} wanted={wanted} close={close} done={done}>
      {problem => (
        <div class="fields">
          <Field label="Type">
            {id => (
              <select id={id} value={as} onChange={e => setAs(e.currentTarget.value as any)}>
                <option value="Network">network</option>
                <option value="Block">block</option>
              </select>
            )}
          </Field>
          <Field
            label="Prefix"
            wrong={faultOf(problem, "range")}
            hint={at ? `${span(at)}: ${amount(size(at))} addresses` : "This prefix does not fit here."}
          >
            {(id, d) => (
              <select
                id={id}
                aria-describedby={d}
                value={length}
                onChange={e => setLength(Number(e.currentTarget.value))}
              >
                {Array.from({ length: (s.v6 ? 128 : 32) - wide + 1 }, (_, i) => wide + i).map(n => (
                  <option key={n} value={n}>
                    /{n}
                  </option>
                ))}
              </select>
            )}
          </Field>
          <Field label="Name" wrong={faultOf(problem, "name")}>
            {(id, d) => (
              <input id={id} aria-describedby={d} value={name} onInput={e => setName(e.currentTarget.value)} />
            )}
          </Field>
          <Field label="First address" hint={`Empty: the first free prefix in ${span(s)}.`}>
            {(id, d) => (
              <input
                id={id}
                aria-describedby={d}
                class="mono"
                value={from}
                placeholder={at ? address(at.low, s.v6) : ""}
                onInput={e => setFrom(e.currentTarget.value.trim())}
              />
            )}
          </Field>
        </div>
      )}
    </Preview>
  )
}

function Split({ r, parent, close, done }: { r: Resource; parent: string; close: () => void; done: () => void }) {
  const block = r.type.endsWith("Block"),
    [parts, setParts] = useState(2)
  const s = parseSpan(r.range)!,
    length = prefixLength(s)
  const above = parent.startsWith("blocks/") ? parent : null
  const wanted: Wanted | null = block
    ? {
        method: "POST",
        path: `blocks/${r.id}/splits`,
        body: { type: r.type + "Split", block: { id: r.id } },
        says: `Split ${r.range}.`,
      }
    : above
      ? {
          method: "POST",
          path: above + "/splits",
          body: { type: r.type + "Split", network: { id: r.id }, networkCount: parts },
          says: `Split ${r.range} into ${parts}.`,
        }
      : null
  return (
    <Preview title={"Split " + r.range} wanted={wanted} close={close} done={done}>
      {() =>
        block ? (
          <p>This splits the block into two halves. Each block and network moves to the half that contains it.</p>
        ) : (
          <Field
            label="Into"
            hint={
              length !== null
                ? `Networks of /${length + Math.log2(parts)}. Each keeps the name and the settings; the gateway does not change.`
                : undefined
            }
          >
            {(id, d) => (
              <select
                id={id}
                aria-describedby={d}
                value={parts}
                onChange={e => setParts(Number(e.currentTarget.value))}
              >
                {[2, 4, 8, 16, 32, 64]
                  .filter(n => length === null || length + Math.log2(n) <= (s.v6 ? 127 : 30))
                  .map(n => (
                    <option key={n} value={n}>
                      {n} networks
                    </option>
                  ))}
              </select>
            )}
          </Field>
        )
      }
    </Preview>
  )
}

function Merge({ r, parent, close, done }: { r: Resource; parent: string; close: () => void; done: () => void }) {
  const block = r.type.endsWith("Block"),
    what = block ? "blocks" : "networks"
  const [near, setNear] = useState<Resource[] | null>(null),
    [failed, setFailed] = useState<Problem>(),
    [picked, setPicked] = useState<number[]>([])
  useEffect(() => {
    const s = parseSpan(r.range)!,
      reach = size(s) * 4n,
      top = (1n << (s.v6 ? 128n : 32n)) - 1n,
      low = s.low > reach ? s.low - reach : 0n,
      high = s.high + reach > top ? top : s.high + reach
    const filter = `range:within('${address(low, s.v6)}-${address(high, s.v6)}')`
    get<Page>(`${parent}/${what}` + query({ filter, orderBy: "range", limit: 200 }), { quiet: true }).then(
      p => {
        // Adjacent siblings on both sides.
        const list = p.data.map(x => ({ x, s: parseSpan(x.range)! })).filter(x => x.x.id !== r.id),
          found: Resource[] = []
        for (let end = s.high, n = 0; n < 8; n++) {
          const next = list.find(x => x.s.low === end + 1n)
          if (!next) break
          found.push(next.x)
          end = next.s.high
        }
        for (let begin = s.low, n = 0; n < 8; n++) {
          const next = list.find(x => x.s.high === begin - 1n)
          if (!next) break
          found.unshift(next.x)
          begin = next.s.low
        }
        setNear(found)
      },
      e => setFailed(problemOf(e)),
    )
  }, [])
  const wanted: Wanted | null = picked.length
    ? {
        method: "POST",
        path: `${parent.startsWith("blocks/") ? parent : "blocks/" + r.id}/merges`,
        body: { type: r.type + "Merge", [what]: picked.map(id => ({ id })), destination: { id: r.id } },
        says: `Merged into ${r.range}.`,
      }
    : null
  return (
    <Preview title={"Merge into " + r.range} wanted={wanted} close={close} done={done}>
      {() =>
        failed ? (
          <Trouble problem={failed} />
        ) : near === null ? (
          <Loading />
        ) : near.length === 0 ? (
          <p>No adjacent blocks or networks.</p>
        ) : (
          <fieldset class="choice">
            <legend>Merge these</legend>
            {near.map(x => (
              <label key={x.id}>
                <input
                  type="checkbox"
                  checked={picked.includes(x.id)}
                  onChange={e => setPicked(p => (e.currentTarget.checked ? [...p, x.id] : p.filter(i => i !== x.id)))}
                />
                <span class="mono">{x.range}</span> {x.name}
              </label>
            ))}
          </fieldset>
        )
      }
    </Preview>
  )
}

function Move({ r, close, done }: { r: Resource; close: () => void; done: () => void }) {
  const [to, setTo] = useState("")
  const s = parseSpan(to)
  const wanted: Wanted | null = s
    ? {
        method: "POST",
        path: `${r.type.endsWith("Block") ? "blocks" : "networks"}/${r.id}/moves`,
        body: { type: "IPMove", address: to.split("/")[0] },
        says: `Moved ${r.range} to ${to}.`,
      }
    : null
  return (
    <Preview title={"Move " + r.range} wanted={wanted} close={close} done={done}>
      {problem => (
        <Field
          label="New first address"
          hint="Everything inside moves with it."
          wrong={problem?.fields?.includes("address") ? problem.message : undefined}
        >
          {(id, d) => (
            <input
              id={id}
              aria-describedby={d}
              class="mono"
              placeholder={r.range!.split("/")[0]}
              value={to}
              onInput={e => setTo(e.currentTarget.value.trim())}
            />
          )}
        </Field>
      )}
    </Preview>
  )
}

/** The tabs of a block: key and label. */
const blockTabs: [below: string, label: string][] = [
  ["", "Tree"],
  ["map", "Map"],
  ["deploymentOptions", "Options"],
  ["deploymentRoles", "Roles"],
  ["fields", "All fields"],
  ["transactions", "History"],
  ["tags", "More"],
]

/** The page of a block, as a tree or as a map. */
export function BlockPage({ id, below = "" }: { id: string; below?: string }) {
  const { data: r, problem, reload } = useResource("blocks/" + id, ["blocks", "networks", "addresses"])
  const [act, setAct] = useState<Act["act"] | null>(null),
    may = useMay("blocks/" + id)
  if (!r)
    return problem ? (
      <>
        <Head title="Block" />
        <Trouble problem={problem} retry={reload} />
      </>
    ) : (
      <Loading />
    )
  const up = r._links?.up?.href.replace(/^\/api\/v2\//, "") ?? ""
  const closed = () => setAct(null)
  return (
    <>
      <Head
        title={<span class="mono">{r.range}</span>}
        kind={kind(r.type) + (r.name ? " · " + r.name : "")}
        crumbs={<Crumbs r={r} />}
      >
        <a class="button" href={"/ui/find?in=" + id}>
          <Icon name="locate-fixed" />
          Find space
        </a>
        {may.change && (
          <Button icon="ellipsis-vertical" onClick={() => setAct("menu")}>
            More
          </Button>
        )}
        {may.add && (
          <Button icon="plus" primary onClick={() => setAct("network")}>
            New network
          </Button>
        )}
      </Head>
      <p class="summary">
        <UseOf r={r} />{" "}
        <span class="muted">
          <UsedOf r={r} /> addresses{r.usagePercentage && " in use"}
        </span>
        {r.location && (
          <>
            {" "}
            · <span>{r.location.name}</span>
          </>
        )}
      </p>
      <Tabs
        tabs={blockTabs}
        chosen={blockTabs.some(([k]) => k === below) ? below : "tags"}
        choose={k => go(`/ui/blocks/${id}` + (k && "/" + k))}
      />
      {below === "map" ? (
        <SpaceMap key={id} collection="blocks" r={r} />
      ) : below === "" ? (
        <Tree key={id} root={"blocks/" + id} whole={r} may={may} />
      ) : below === "fields" ? (
        <Fields r={r} />
      ) : blockTabs.some(([k]) => k === below && k !== "tags") ? (
        <Below r={r} collection="blocks" what={below} may={may} />
      ) : (
        <Further
          r={r}
          collection="blocks"
          below={below}
          without={[...blockTabs.map(([k]) => k).filter(k => k !== "tags"), "blocks", "networks"]}
          may={may}
        />
      )}
      {act === "menu" && <Menu r={r} close={closed} pick={setAct} />}
      {act && act !== "menu" && (
        <Doing
          act={act}
          r={r}
          parent={up}
          close={closed}
          done={() => {
            closed()
            reload()
            if (act === "delete") go("/ui/space")
          }}
        />
      )}
    </>
  )
}
