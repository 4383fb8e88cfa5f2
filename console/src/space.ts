// Arithmetic on address space: addresses as integers, prefixes, ranges, and the gaps between them.

export interface Span {
  v6: boolean
  low: bigint
  high: bigint
}

/** Parses an address; null if it is not valid. */
export function parseAddress(text: string): { v6: boolean; n: bigint } | null {
  if (/^\d{1,3}(\.\d{1,3}){3}$/.test(text)) {
    const parts = text.split(".").map(Number)
    return parts.every(p => p < 256)
      ? { v6: false, n: BigInt(((parts[0] * 256 + parts[1]) * 256 + parts[2]) * 256 + parts[3]) }
      : null
  }
  if (!text.includes(":")) return null
  const mixed = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(text)
  if (mixed) {
    const v4 = parseAddress(mixed[2])
    if (!v4) return null
    text = mixed[1] + (v4.n >> 16n).toString(16) + ":" + (v4.n & 0xffffn).toString(16)
  }
  const halves = text.split("::")
  if (halves.length > 2) return null
  const head = halves[0] ? halves[0].split(":") : [],
    tail = halves.length === 2 && halves[1] ? halves[1].split(":") : []
  const missing = 8 - head.length - tail.length
  if (halves.length === 2 ? missing < 1 : missing !== 0) return null
  const groups = [...head, ...Array(halves.length === 2 ? missing : 0).fill("0"), ...tail]
  if (!groups.every(g => /^[0-9a-f]{1,4}$/i.test(g))) return null
  return { v6: true, n: groups.reduce((n, g) => (n << 16n) | BigInt("0x" + g), 0n) }
}

/** Formats an address; IPv6 as in RFC 5952. */
export function address(n: bigint, v6: boolean): string {
  if (!v6) return [24n, 16n, 8n, 0n].map(s => ((n >> s) & 255n).toString()).join(".")
  const groups = Array.from({ length: 8 }, (_, i) => Number((n >> BigInt(112 - 16 * i)) & 0xffffn))
  let best = -1,
    length = 1
  for (let i = 0; i < 8; i++) {
    let j = i
    while (j < 8 && groups[j] === 0) j++
    if (j - i > length) {
      best = i
      length = j - i
    }
    if (j > i) i = j
  }
  const hex = groups.map(g => g.toString(16))
  return best < 0 ? hex.join(":") : hex.slice(0, best).join(":") + "::" + hex.slice(best + length).join(":")
}

const bits = (v6: boolean) => (v6 ? 128 : 32)

/** Parses CIDR, start-end, or a single address. */
export function parseSpan(text: string | null | undefined): Span | null {
  if (!text) return null
  const [a, length] = text.split("/")
  if (length !== undefined) {
    const at = parseAddress(a),
      n = Number(length)
    if (!at || !/^\d+$/.test(length) || n > bits(at.v6)) return null
    const host = BigInt(bits(at.v6) - n),
      low = (at.n >> host) << host
    return { v6: at.v6, low, high: low + (1n << host) - 1n }
  }
  const [from, to] = text.split("-").map(parseAddress)
  if (!from || (text.includes("-") && (!to || to.v6 !== from.v6))) return null
  return { v6: from.v6, low: from.n, high: to ? to.n : from.n }
}

export function size(s: Span) {
  return s.high - s.low + 1n
}

/** Returns the number of used addresses and of usable host addresses of a network, from its usage. */
export function usedOf(r: { usage?: any; [other: string]: any }): { used: number; all: number } {
  let used = 0,
    all = 0
  for (const [state, n] of Object.entries((r.usage ?? {}) as Record<string, number>)) {
    if (typeof n !== "number") continue
    all += n
    if (state !== "UNASSIGNED") used += n
  }
  return { used, all }
}

/** Returns the prefix length of a span; null if the span is not a prefix. */
export function prefixLength(s: Span): number | null {
  const n = size(s)
  if ((n & (n - 1n)) !== 0n || s.low % n !== 0n) return null
  return bits(s.v6) - (n.toString(2).length - 1)
}

/** Formats a span, as CIDR if it is a prefix. */
export function span(s: Span): string {
  const length = prefixLength(s)
  return length === null ? address(s.low, s.v6) + "-" + address(s.high, s.v6) : address(s.low, s.v6) + "/" + length
}

/** Formats a number of addresses; large numbers as powers of two. */
export function amount(n: bigint): string {
  if (n < 1n << 32n) return Number(n).toLocaleString("en").replaceAll(",", "\u202f")
  const low = n.toString(2).length - 1,
    power = n - (1n << BigInt(low)) > (1n << BigInt(low)) / 2n ? low + 1 : low
  return 1n << BigInt(power) === n ? "2^" + power : "about 2^" + power
}

/** Returns the parts of a span outside of the others, which must be sorted and must not overlap. */
export function gaps(whole: Span, inside: Span[]): Span[] {
  const free: Span[] = []
  let at = whole.low
  for (const s of inside) {
    if (s.low > at) free.push({ v6: whole.v6, low: at, high: s.low - 1n })
    if (s.high + 1n > at) at = s.high + 1n
  }
  if (at <= whole.high) free.push({ v6: whole.v6, low: at, high: whole.high })
  return free
}

/** Splits a span into the largest prefixes that fit, in order. */
export function prefixes(s: Span): Span[] {
  const list: Span[] = []
  let at = s.low
  while (at <= s.high) {
    let host = 0n
    while (host < BigInt(bits(s.v6)) && at % (1n << (host + 1n)) === 0n && at + (1n << (host + 1n)) - 1n <= s.high)
      host++
    list.push({ v6: s.v6, low: at, high: at + (1n << host) - 1n })
    at += 1n << host
  }
  return list
}

/** Returns the first prefix of a length in a span; null if none fits. */
export function firstPrefix(s: Span, length: number): Span | null {
  const n = 1n << BigInt(bits(s.v6) - length),
    low = ((s.low + n - 1n) / n) * n
  return low + n - 1n <= s.high ? { v6: s.v6, low, high: low + n - 1n } : null
}

/**
 * Places count prefixes of a length in the gaps, smallest pieces first, so that large pieces stay whole. Each result has the index of its
 * gap. Returns null if they do not fit.
 */
export function scattered(open: Span[], count: number, length: number): { s: Span; gap: number }[] | null {
  const pieces = open
    .flatMap((g, gap) => prefixes(g).map(piece => ({ gap, piece })))
    .filter(({ piece: p }) => size(p) >= 1n << BigInt(bits(p.v6) - length))
  pieces.sort((a, b) =>
    size(a.piece) < size(b.piece) ? -1 : size(a.piece) > size(b.piece) ? 1 : compare(a.piece, b.piece),
  )
  const take: { s: Span; gap: number }[] = []
  for (const { gap, piece } of pieces) {
    const each = 1n << BigInt(bits(piece.v6) - length)
    for (let at = piece.low; at <= piece.high && take.length < count; at += each)
      take.push({ gap, s: { v6: piece.v6, low: at, high: at + each - 1n } })
  }
  return take.length < count ? null : take.sort((a, b) => compare(a.s, b.s))
}

/**
 * Returns the part of a span that hosts of a network can have: without the network and the broadcast address of an IPv4 network, if it has
 * more than two addresses (RFC 3021).
 */
export function hosts(network: Span, s: Span = network): Span {
  const edge = network.v6 || size(network) <= 2n ? 0n : 1n,
    low = network.low + edge,
    high = network.high - edge
  return { v6: s.v6, low: s.low < low ? low : s.low, high: s.high > high ? high : s.high }
}

export function compare(a: Span, b: Span) {
  return a.v6 !== b.v6
    ? a.v6
      ? 1
      : -1
    : a.low < b.low
      ? -1
      : a.low > b.low
        ? 1
        : a.high > b.high
          ? -1
          : a.high < b.high
            ? 1
            : 0
}
