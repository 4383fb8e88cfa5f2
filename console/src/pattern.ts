// Name patterns: names for several resources from one text, such as rack7-srv-[01-40]. The command line has the same rules
// (internal/client/cli/pattern.go).

/** What a pattern gives: the names, or the reason why there are none. */
export interface Names {
  names: string[]
  fault?: string
}

/** The number of names that a pattern itself states, such as 40 for [01-40]; undefined if it states none. */
export function countOf(pattern: string): number | undefined {
  const m = /\[(\d+)-(\d+)\]/.exec(pattern)
  return m && Number(m[2]) >= Number(m[1]) ? Number(m[2]) - Number(m[1]) + 1 : undefined
}

/**
 * Returns count names of a pattern. [01-40] is replaced by the numbers from 01 to 40 in this width, [01] by the numbers from 01 on, and a
 * row of # by the numbers from 1 on in its width. A text without any of these gets -1, -2 and so on if count is greater than 1.
 */
export function namesOf(pattern: string, count: number): Names {
  const text = pattern.trim()
  if (!text) return { names: [] }
  const range = /\[(\d+)(?:-(\d+))?\]/.exec(text),
    row = /#+/.exec(text)
  if (/[[\]]/.test(text.replace(/\[\d+(-\d+)?\]/, "")) || (range && row))
    return { names: [], fault: "Use one number: [01-40] from 01 to 40, [7] from 7 on, or ## from 01 on." }
  const first = range ? Number(range[1]) : 1,
    width = range ? range[1].length : row ? row[0].length : 1
  if (range?.[2] !== undefined) {
    const many = Number(range[2]) - first + 1
    if (many < 1) return { names: [], fault: `${range[0]} ends before it begins.` }
    if (many !== count) return { names: [], fault: `${range[0]} gives ${many} names for ${count}.` }
  }
  const found = range ?? row
  if (!found) return { names: count === 1 ? [text] : Array.from({ length: count }, (_, i) => `${text}-${i + 1}`) }
  const before = text.slice(0, found.index),
    after = text.slice(found.index + found[0].length)
  return {
    names: Array.from({ length: count }, (_, i) => before + String(first + i).padStart(width, "0") + after),
  }
}
