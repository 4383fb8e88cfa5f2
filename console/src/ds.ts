// Compares the DS records in a parent zone with those that should be there.

/** Returns the data of a DS record in a comparable form: "12345 13 2 ABCD". */
function dsData(line: string) {
  return (/\bDS\s+(\d+\s+\d+\s+\d+\s+[0-9A-Fa-f ]+)/.exec(line) ?? ["", line])[1]
    .trim()
    .replace(/^(\d+)\s+(\d+)\s+(\d+)\s+(.*)$/, (_, tag, algorithm, digest, hash) =>
      [tag, algorithm, digest, hash.replaceAll(/\s/g, "").toUpperCase()].join(" "),
    )
}

/** Compares the DS records in the parent zone with those that should be there. */
export function compareDS(wanted: string[], found: string[]): { state: "OK" | "WARNING" | "ERROR"; says: string } {
  const there = found.filter(l => /\bDS\s/.test(l)).map(dsData),
    own = wanted.map(dsData)
  if (own.some(w => there.includes(w)))
    return there.every(f => own.includes(f))
      ? { state: "OK", says: "The parent zone has the DS record. Validators trust this zone." }
      : {
          state: "WARNING",
          says: "The parent zone has the DS record, and DS records of keys that this zone does not use. Remove the unused ones.",
        }
  if (there.length === 0)
    return {
      state: "WARNING",
      says: "The parent zone has no DS record. The zone is signed, but validators do not check it.",
    }
  return {
    state: "ERROR",
    says: "The DS records in the parent zone belong to other keys. Validators reject this zone: correct the DS records.",
  }
}
