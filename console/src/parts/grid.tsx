// A table with rows of equal height that draws only the visible rows.
import type { ComponentChildren } from "preact"
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"
import { Icon } from "../icons"
import { restored } from "../router"
import { maxPrinted, printing, SaveShown } from "./tools"

export interface Column<T> {
  key: string
  title: string
  /** A width for grid-template-columns, such as "8rem" or "minmax(6rem,1fr)". */
  width?: string
  number?: boolean
  /** Hidden on narrow pages. */
  minor?: boolean
  /** The width on narrow pages. */
  narrow?: string
  /** The orderBy expression that a click on the title requests. */
  sort?: string
  cell: (row: T, i: number) => ComponentChildren
}

/** The column of RowActions. */
export const actions = { key: "acts", title: "", width: "4.5rem", narrow: "4.2rem" }

/** The buttons that change and delete the resource of a row. */
export function RowActions(p: { name: string; change: () => void; remove: () => void }) {
  return (
    <span>
      <button class="plain" tabIndex={-1} aria-label={"Change " + p.name} onClick={p.change}>
        <Icon name="pencil" size={14} />
      </button>
      <button class="plain" tabIndex={-1} aria-label={"Delete " + p.name} onClick={p.remove}>
        <Icon name="trash-2" size={14} />
      </button>
    </span>
  )
}

interface Props<T> {
  label: string
  columns: Column<T>[]
  count: number
  at: (i: number) => T | undefined
  /** Called on Enter or a double click. */
  open?: (row: T, i: number) => void
  order?: string
  reorder?: (order: string) => void
  empty?: ComponentChildren
  /** Returns the identity of a row. */
  id?: (row: T) => string | number
  /** Called for other keys on the selected row. */
  onKey?: (e: KeyboardEvent, row: T | undefined, i: number) => void
  tree?: boolean
  /** Lets the user select several rows. selectable limits the rows. */
  select?: Selectable<T>
  attributes?: (row: T) => Record<string, any>
  /** Shows all columns on narrow pages, where the table scrolls sideways below a fixed first column. Otherwise it leaves out minor ones. */
  scrolls?: boolean
}

/** The selection of several rows. */
export interface Selectable<T> {
  /** Reports whether a row is selected. */
  has: (row: T) => boolean
  /** The number of selected rows. */
  size: number
  /** Reports whether a row can be selected. */
  can?: (row: T) => boolean
  label: (row: T) => string
  set: (list: T[], on: boolean) => void
  all: () => void
  clear: () => void
  /** Selects the rows between two indexes. */
  range: (from: number, to: number) => void
}

/** The heights of a row in pixels: on wide pages, and on narrow ones, where a cell has two lines. Keep them equal to those in styles.css. */
const wideRow = 32
const narrowRow = 44
const beyond = 12

/** The maximum height that browsers draw, in pixels (Firefox: 17 million). */
const highest = 15_000_000

/** Returns the width of a column, in rem, in a table that scrolls sideways. */
function sidewaysWidth<T>(c: Column<T>, isFixed: boolean): number {
  const rem = Number(/([\d.]+)rem/.exec(c.key === "selected" ? "1.5rem" : (c.width ?? ""))?.[1] ?? 7)
  return Math.min(rem, isFixed ? 8.5 : 13)
}

/** A grid of loaded rows, with buttons that save and print them. save is the name of the file. */
export function ListGrid<T>({ save, list, ...p }: Omit<Props<T>, "count" | "at"> & { save: string; list: T[] }) {
  return (
    <>
      {list.length > 0 && (
        <div class="tools">
          <span class="grow" />
          <SaveShown name={save} columns={p.columns} list={list} />
        </div>
      )}
      <Grid {...p} count={list.length} at={i => list[i]} />
    </>
  )
}

/**
 * A grid. Arrows, Page Up, Page Down, Home and End move the current row; Enter opens it. With select, Space selects it, Shift extends the
 * selection, Ctrl+A selects all rows, and Escape clears the selection.
 */
export function Grid<T>(p: Props<T>) {
  const ref = useRef<HTMLDivElement>(null)
  const [view, setView] = useState({ top: 0, height: 600 })
  const [chosen, setChosen] = useState(0)
  const narrow = useNarrow(),
    rowHeight = narrow ? narrowRow : wideRow,
    many = p.select,
    anchor = useRef<number | null>(null),
    shift = useRef(false)
  const prints = printing.value,
    sideways = narrow && !prints && !!p.scrolls
  /** Selects or clears a row; with shift, selects the rows from the last one on. */
  const mark = (row: T, i: number, shift: boolean) => {
    if (!many || many.can?.(row) === false) return
    if (shift && anchor.current !== null) many.range(anchor.current, i)
    else many.set([row], !many.has(row))
    anchor.current = i
  }
  const columns: Column<T>[] = [
    ...(many && !prints
      ? [
          {
            key: "selected",
            title: "Selected",
            width: "1.5rem",
            narrow: "1.5rem",
            cell: (row: T, i: number) =>
              many.can?.(row) === false ? null : (
                <input
                  type="checkbox"
                  tabIndex={-1}
                  class="pick"
                  aria-label={"Select " + many.label(row)}
                  checked={many.has(row)}
                  onClick={e => {
                    shift.current = e.shiftKey
                  }}
                  onChange={e => {
                    e.currentTarget.checked = many.has(row) // the selection decides
                    mark(row, i, shift.current)
                    ref.current?.focus({ preventScroll: true })
                  }}
                />
              ),
          },
        ]
      : []),
    ...p.columns.filter(c => (prints ? c.title : !c.minor || !narrow || sideways)),
  ]
  const fixed = columns[many && !prints ? 1 : 0]
  const width = (c: Column<T>) =>
    prints
      ? `minmax(0,${/([\d.]+)rem/.exec(c.width ?? "")?.[1] ?? 6}fr)` // the paper is as wide as it is
      : sideways
        ? `${sidewaysWidth(c, c === fixed)}rem`
        : !narrow
          ? (c.width ?? "minmax(6rem,1fr)")
          : (c.narrow ??
            (c.width ?? "1fr").replace(/^minmax\([^,]+,/, "minmax(0,").replace(/^([\d.]+(rem|fr))$/, "minmax(0,$1)"))
  const template = columns.map(width).join(" "),
    wide = sideways ? columns.reduce((sum, c) => sum + sidewaysWidth(c, c === fixed) + 0.5, 0.5) + "rem" : undefined
  useLayoutEffect(() => {
    const main = document.getElementById("main")!
    const look = () => {
      const box = ref.current!.getBoundingClientRect(),
        outer = main.getBoundingClientRect()
      setView({ top: Math.max(0, outer.top - box.top), height: outer.height })
    }
    look()
    main.addEventListener("scroll", look, { passive: true })
    const sizes = new ResizeObserver(look)
    sizes.observe(main)
    return () => {
      main.removeEventListener("scroll", look)
      sizes.disconnect()
    }
  }, [])
  const back = useRef(restored())
  useLayoutEffect(() => {
    const main = document.getElementById("main")!
    if (!back.current || !p.count) return
    main.scrollTop = back.current
    if (main.scrollTop >= back.current - 1) back.current = 0 // otherwise there are not enough rows yet
  }, [p.count])
  useEffect(() => {
    // manual scrolling ends the restoring
    const leave = () => {
        back.current = 0
      },
      main = document.getElementById("main")!
    for (const e of ["wheel", "pointerdown", "keydown"]) main.addEventListener(e, leave, { passive: true })
    return () => {
      for (const e of ["wheel", "pointerdown", "keydown"]) main.removeEventListener(e, leave)
    }
  }, [])
  // The selection follows the row, not the index: it stays when rows are added or removed above.
  const id = useRef<string | number | undefined>(undefined)
  const pick = (i: number) => {
    const row = p.at(i)
    id.current = row !== undefined && p.id ? p.id(row) : undefined
    setChosen(i)
  }
  useLayoutEffect(() => {
    if (chosen >= p.count && p.count) {
      setChosen(p.count - 1)
      return
    }
    const row = p.at(chosen)
    if (!p.id || row === undefined) return
    if (id.current === undefined) {
      id.current = p.id(row)
      return
    }
    if (p.id(row) === id.current) return
    for (let d = 1; d < 200; d++)
      for (const i of [chosen - d, chosen + d]) {
        const other = i >= 0 && i < p.count ? p.at(i) : undefined
        if (other !== undefined && p.id(other) === id.current) {
          setChosen(i)
          return
        }
      }
    id.current = p.id(row)
  })
  // Browsers limit the height of a page. For longer tables, the rows scroll faster than the page.
  const height = p.count * rowHeight,
    tall = Math.min(height, highest),
    faster = tall > view.height ? Math.max(1, (height - view.height) / (tall - view.height)) : 1
  const top = faster === 1 ? view.top : Math.min(view.top * faster, height - view.height)
  const first = prints ? 0 : Math.max(0, Math.floor(top / rowHeight) - beyond)
  const last = prints
    ? Math.min(p.count, maxPrinted)
    : Math.min(p.count, Math.ceil((top + view.height) / rowHeight) + beyond)
  const move = (i: number) => {
    const to = Math.max(0, Math.min(p.count - 1, i))
    pick(to)
    const main = document.getElementById("main")!,
      box = ref.current!.getBoundingClientRect(),
      outer = main.getBoundingClientRect()
    if (faster > 1) {
      if (to * rowHeight < top || (to + 2) * rowHeight > top + view.height)
        main.scrollTop += (to * rowHeight - top) / faster
      return
    }
    const y = box.top + (to + 1) * rowHeight
    if (y < outer.top + rowHeight) main.scrollTop -= outer.top + rowHeight - y
    else if (y + rowHeight > outer.bottom - 8) main.scrollTop += y + rowHeight - outer.bottom + 8
  }
  const keys = (e: KeyboardEvent) => {
    if ((e.target as Element).closest("input:not(.pick),select,textarea,button")) return
    if (many && p.count) {
      const here = p.at(chosen)
      if (e.key === " " && here !== undefined) {
        e.preventDefault()
        mark(here, chosen, e.shiftKey)
        return
      }
      if (e.shiftKey && (e.key === "ArrowDown" || e.key === "ArrowUp")) {
        e.preventDefault()
        const to = Math.max(0, Math.min(p.count - 1, chosen + (e.key === "ArrowDown" ? 1 : -1))),
          next = p.at(to),
          both = [here, next].filter((x): x is T & {} => x !== undefined && many.can?.(x) !== false)
        many.set(both, true)
        anchor.current = to
        move(to)
        return
      }
      if ((e.ctrlKey || e.metaKey) && e.key === "a") {
        e.preventDefault()
        many.all()
        return
      }
      if (e.key === "Escape" && many.size) {
        e.preventDefault()
        many.clear()
        return
      }
    }
    const page = Math.max(1, Math.floor(view.height / rowHeight) - 2)
    const to = (
      {
        ArrowDown: chosen + 1,
        ArrowUp: chosen - 1,
        PageDown: chosen + page,
        PageUp: chosen - page,
        Home: 0,
        End: p.count - 1,
      } as Record<string, number>
    )[e.key]
    if (to !== undefined) {
      e.preventDefault()
      move(to)
      return
    }
    const row = p.at(chosen)
    if (row !== undefined && p.id && id.current !== undefined && p.id(row) !== id.current) return // the row was just removed
    if (e.key === "Enter" && row !== undefined && p.open && e.target === ref.current) {
      e.preventDefault()
      p.open(row, chosen)
      return
    }
    p.onKey?.(e, row, chosen)
  }
  const rows = []
  for (let i = first; i < last; i++) {
    const row = p.at(i)
    if (prints && row === undefined) continue
    rows.push(
      <div
        key={row !== undefined && p.id ? "r" + p.id(row) : i}
        id={"row-" + i}
        role="row"
        aria-rowindex={i + 2}
        aria-selected={many ? row !== undefined && many.has(row) : i === chosen}
        class={
          "row" + (i === chosen ? " chosen" : "") + (many && row !== undefined && many.has(row) ? " selected" : "")
        }
        style={{
          transform: `translateY(${Math.round(i * rowHeight - top + view.top)}px)`,
          gridTemplateColumns: template,
        }}
        onMouseDown={e => {
          pick(i)
          if (row === undefined || !many || (e.target as Element).closest("button,input,a")) return
          if (e.ctrlKey || e.metaKey || e.shiftKey) {
            e.preventDefault() // no selection of text
            ref.current?.focus({ preventScroll: true })
            mark(row, i, e.shiftKey)
          } else anchor.current = i
        }}
        onDblClick={e => {
          if (row !== undefined && p.open && !(e.target as Element).closest("button,input,a")) p.open(row, i)
        }}
        {...(row !== undefined && p.attributes ? p.attributes(row) : {})}
      >
        {columns.map(c => (
          <div key={c.key} role="gridcell" class={c.number ? "num right" : ""}>
            {row === undefined ? <span class="skeleton" /> : c.cell(row, i)}
          </div>
        ))}
      </div>,
    )
  }
  return (
    <div class={"grid-box" + (sideways ? " sideways" : "") + (sideways && many ? " picks" : "")}>
      <div
        ref={ref}
        class="grid"
        style={{ width: wide, minWidth: sideways ? "100%" : undefined }}
        role={p.tree ? "treegrid" : "grid"}
        aria-label={p.label}
        aria-rowcount={p.count + 1}
        aria-multiselectable={many ? true : undefined}
        tabIndex={0}
        onKeyDown={keys}
        aria-activedescendant={p.count ? "row-" + chosen : undefined}
      >
        <div
          role="rowgroup"
          class="grid-head"
          style={{ transform: sideways && view.top > 0 ? `translateY(${view.top}px)` : undefined }}
        >
          <div role="row" aria-rowindex={1} class="row headrow" style={{ gridTemplateColumns: template }}>
            {columns.map(c => {
              const by =
                c.sort && p.reorder
                  ? p.order === `desc(${c.sort})`
                    ? "descending"
                    : p.order === `asc(${c.sort})` || p.order === c.sort
                      ? "ascending"
                      : "none"
                  : undefined
              if (many && c.key === "selected")
                return (
                  <div key={c.key} role="columnheader">
                    <input
                      type="checkbox"
                      class="pick-all"
                      aria-label="Select all rows that match the filter"
                      checked={many.size > 0 && many.size >= p.count}
                      indeterminate={many.size > 0 && many.size < p.count}
                      onChange={e => {
                        e.currentTarget.checked = many.size >= p.count
                        if (many.size) many.clear()
                        else many.all()
                      }}
                    />
                  </div>
                )
              return (
                <div key={c.key} role="columnheader" aria-sort={by as any} class={c.number ? "right" : ""}>
                  {by ? (
                    <button
                      class="plain sort"
                      onClick={() => p.reorder!(by === "ascending" ? `desc(${c.sort})` : `asc(${c.sort})`)}
                    >
                      {c.title}
                      {by === "ascending" ? <Arrow up /> : by === "descending" ? <Arrow /> : null}
                    </button>
                  ) : (
                    c.title || <span class="hidden">Actions</span>
                  )}
                </div>
              )
            })}
          </div>
        </div>
        {p.count === 0 ? (
          <div role="row" class="grid-empty">
            <div role="gridcell">{p.empty ?? "No rows."}</div>
          </div>
        ) : (
          <div role="rowgroup" class="grid-body" style={{ height: tall + "px" }}>
            {rows}
          </div>
        )}
      </div>
    </div>
  )
}

function Arrow({ up }: { up?: boolean }) {
  return <span aria-hidden="true">{up ? " ↑" : " ↓"}</span>
}

/** Reports whether the page is narrow. */
export function useNarrow() {
  const media = "(max-width: 760px)"
  const [narrow, setNarrow] = useState(() => matchMedia(media).matches)
  useEffect(() => {
    const m = matchMedia(media),
      fn = () => setNarrow(m.matches)
    m.addEventListener("change", fn)
    return () => m.removeEventListener("change", fn)
  }, [])
  return narrow
}
