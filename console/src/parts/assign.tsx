// Assigns one or several addresses of a network, with names, hardware addresses, and host and PTR records in the same change.
import { useEffect, useState } from "preact/hooks"
import { get, query, type Page, type Problem, type Resource } from "../api"
import { useData } from "../data"
import { Icon } from "../icons"
import { countOf, namesOf } from "../pattern"
import { address, amount, hosts, parseAddress, parseSpan, size, span, type Span } from "../space"
import { choice, Field } from "./basics"
import { RefInput } from "./form"
import { Preview } from "./preview"
import { counted } from "../words"
import { type Wanted } from "../staged"

/** Returns the message of a problem that concerns a field. */
const wrongOf = (problem: Problem | undefined, concerns: (field: string) => boolean) =>
  problem?.fields?.some(concerns) ? problem.message : undefined

/** The largest number of addresses of one change. */
const most = 1000

/** Splits pasted hardware addresses. */
const macsOf = (text: string) => text.split(/[\s,;]+/).filter(Boolean)

/** Returns the free addresses of a network in order, without those of its DHCP ranges. */
async function freeIn(network: number, count: number, ranges: Span[], signal: AbortSignal): Promise<string[]> {
  const found: string[] = []
  for (let offset = 0; found.length < count; offset += most) {
    const page = await get<Page>(
      `networks/${network}/addresses` +
        query({ filter: "state:'UNASSIGNED'", fields: "address", limit: most, offset: offset || undefined }),
      { signal, quiet: true },
    )
    for (const x of page.data) {
      const n = parseAddress(x.address!)!.n
      if (!ranges.some(p => p.low <= n && p.high >= n)) found.push(x.address!)
    }
    if (page.data.length < most) break
  }
  return found.slice(0, count)
}

/** The form. s is the free run that the user chose; without it, the next free addresses of the network are used. */
export function Assign({
  r,
  s,
  count: begin,
  close,
  done,
}: {
  r: Resource
  s?: Span
  count: number
  close: () => void
  done: () => void
}) {
  const whole = parseSpan(r.range)!,
    run = s && hosts(whole, s),
    v6 = whole.v6,
    type = v6 ? "IPv6Address" : "IPv4Address"
  const [first, setFirst] = useState(run ? address(run.low, v6) : ""),
    [count, setCount] = useState(begin),
    [name, setName] = useState(""),
    [state, setState] = useState("STATIC"),
    [macs, setMacs] = useState(""),
    [zone, setZone] = useState<Resource | null>(null),
    [isZoneChosen, setZoneChosen] = useState(false),
    [ptr, setPTR] = useState(true),
    [location, setLocation] = useState<Resource | null>(null)
  const ranges = useData<Page>(
    `networks/${r.id}/ranges?limit=200&fields=id,name,range`,
    a => get(`networks/${r.id}/ranges?limit=200&fields=id,name,range`, { signal: a, quiet: true }),
    ["ranges"],
  )
  const zones = useData<Page>(`networks/${r.id}/defaultZones?limit=1`, a =>
    get(`networks/${r.id}/defaultZones?limit=1`, { signal: a, quiet: true }),
  )
  useEffect(() => {
    if (zones.data?.data[0]) setZone(z => z ?? zones.data!.data[0])
  }, [zones.data])
  const chooseZone = (z: Resource | null) => {
    setZone(z)
    setZoneChosen(true)
  }
  const spans = (ranges.data?.data ?? []).flatMap(x => parseSpan(x.range) ?? [])
  const skipped = state === "DHCP_RESERVED" ? [] : spans
  const next = useData<string[]>(
    first || !ranges.data || !(count >= 1 && count <= most)
      ? null
      : `free ${r.id} ${count} ${state === "DHCP_RESERVED"}`,
    a => freeIn(r.id, count, skipped, a),
    ["addresses"],
  )
  const at = parseAddress(first),
    hardware = macsOf(macs),
    names = namesOf(name, count)
  const inside =
    at && state !== "DHCP_RESERVED"
      ? ranges.data?.data.find(x => {
          const p = parseSpan(x.range)
          return p && p.low <= at.n + BigInt(Math.max(1, count) - 1) && p.high >= at.n
        })
      : undefined
  const list = !first
    ? (next.data ?? [])
    : at && at.v6 === v6 && count >= 1 && count <= most
      ? Array.from({ length: count }, (_, i) => address(at.n + BigInt(i), v6))
      : []
  const faults = {
    first: first && (!at || at.v6 !== v6) ? `Must be an ${v6 ? "IPv6" : "IPv4"} address.` : undefined,
    count:
      !(count >= 1) || count > most
        ? `Must be 1 to ${most}.`
        : !first && next.data && next.data.length < count
          ? `Not enough free addresses: ${counted(next.data.length, "addresses")} available.`
          : undefined,
    macs:
      hardware.length && hardware.length !== count
        ? `Enter one MAC address for each address: ${counted(hardware.length, "MAC addresses")} given, ${count} required.`
        : undefined,
    zone: zone && isZoneChosen && !name.trim() ? "Enter a name for the host records." : undefined,
  }
  const ready = list.length === count && !names.fault && !Object.values(faults).some(Boolean)
  const changes = ready
    ? list.flatMap((a, i) => [
        {
          method: "POST",
          path: `networks/${r.id}/addresses`,
          body: {
            type,
            state,
            address: a,
            ...(hardware.length ? { macAddress: { address: hardware[i] } } : {}),
            ...(names.names.length ? { name: names.names[i] } : {}),
            ...(location ? { location: { id: location.id } } : {}),
          },
        },
        ...(zone && names.names.length
          ? [
              {
                method: "POST",
                path: `zones/${zone.id}/resourceRecords`,
                body: { type: "HostRecord", name: names.names[i], addresses: [{ address: a }], reverseRecord: ptr },
              },
            ]
          : []),
      ])
    : []
  const says = count === 1 ? `Assigned ${list[0]}.` : `Assigned ${count} addresses from ${list[0]}.`
  const wanted: Wanted | null = !ready
    ? null
    : changes.length === 1
      ? { ...changes[0], method: "POST", says }
      : {
          method: "POST",
          path: "batch",
          body: { changes },
          says,
          ...(zone && names.names.length
            ? {
                together:
                  "Your changes need an approval. Assign the addresses without a zone, and create the host records once the addresses are approved.",
              }
            : {}),
        }
  return (
    <Preview
      title={run ? `Assign from ${span(run)}` : count === 1 ? "Assign an address" : "Assign addresses"}
      wanted={wanted}
      close={close}
      done={done}
    >
      {problem => (
        <>
          {inside && (
            <p class="box">
              <Icon name="triangle-alert" /> This address is in the DHCP range <span class="mono">{inside.range}</span>
              {inside.name ? " " + inside.name : ""}. DHCP clients may get the same address.
            </p>
          )}
          <div class="fields">
            <Field
              label="Names"
              hint="A name or a pattern: rack7-srv-[01-40] for 40 names, ## for a running number of two digits."
              wrong={names.fault ?? wrongOf(problem, f => /(^|\.)name$/.test(f))}
            >
              {(id, d) => (
                <input
                  id={id}
                  aria-describedby={d}
                  value={name}
                  onInput={e => {
                    const text = e.currentTarget.value,
                      n = countOf(text)
                    setName(text)
                    if (n && n <= most) setCount(n)
                  }}
                />
              )}
            </Field>
            <Field
              label="Number of addresses"
              hint={
                run
                  ? size(run) === 1n
                    ? "One free address."
                    : `${amount(size(run))} consecutive free addresses.`
                  : undefined
              }
              wrong={faults.count}
            >
              {(id, d) => (
                <input
                  id={id}
                  aria-describedby={d}
                  type="number"
                  min={1}
                  max={most}
                  value={count}
                  onInput={e => setCount(Number(e.currentTarget.value))}
                />
              )}
            </Field>
            <Field
              label="First address"
              hint="The first of consecutive addresses. Empty: the next free addresses, also in several gaps."
              wrong={faults.first ?? wrongOf(problem, f => f.endsWith("address") && !f.includes("macAddress"))}
            >
              {(id, d) => (
                <input
                  id={id}
                  aria-describedby={d}
                  class="mono"
                  placeholder={next.data?.[0] ?? ""}
                  value={first}
                  onInput={e => setFirst(e.currentTarget.value.trim())}
                />
              )}
            </Field>
            <Field label="State">
              {id => (
                <select id={id} value={state} onChange={e => setState(e.currentTarget.value)}>
                  {(v6 ? ["STATIC", "DHCP_RESERVED"] : ["STATIC", "RESERVED", "DHCP_RESERVED"]).map(x => (
                    <option key={x} value={x}>
                      {choice(x)}
                    </option>
                  ))}
                </select>
              )}
            </Field>
            <Field
              label={"MAC addresses" + (state === "DHCP_RESERVED" ? " *" : "")}
              hint="One for each address, in order. Paste a column of a spreadsheet."
              wrong={faults.macs ?? wrongOf(problem, f => f.includes("macAddress"))}
            >
              {(id, d) => (
                <textarea
                  id={id}
                  aria-describedby={d}
                  class="mono"
                  rows={Math.min(6, Math.max(1, hardware.length))}
                  spellcheck={false}
                  placeholder="00:00:5e:00:53:01"
                  value={macs}
                  onInput={e => {
                    const text = e.currentTarget.value,
                      n = macsOf(text).length
                    setMacs(text)
                    if (n > 1 && n <= most && countOf(name) === undefined) setCount(n)
                  }}
                />
              )}
            </Field>
            <Field label="Location">
              {id => <RefInput attributes={{ id }} value={location} types={["Location"]} set={setLocation} />}
            </Field>
            <Field
              label="Host records in zone"
              hint="Creates a host record for each name. Empty: no records."
              wrong={faults.zone}
            >
              {(id, d) => (
                <RefInput attributes={{ id, "aria-describedby": d }} value={zone} types={["Zone"]} set={chooseZone} />
              )}
            </Field>
            {zone && (
              <Field label="Reverse records">
                {id => (
                  <select id={id} value={String(ptr)} onChange={e => setPTR(e.currentTarget.value === "true")}>
                    <option value="true">yes (PTR records)</option>
                    <option value="false">no</option>
                  </select>
                )}
              </Field>
            )}
          </div>
        </>
      )}
    </Preview>
  )
}
