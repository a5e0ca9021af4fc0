/** Two names are near if one edit for each group of this many letters is enough to change one into the other. */
const LETTERS_PER_EDIT = 3

/** Returns the known name with the fewest edits; undefined if each known name needs more than `bound` edits. */
export function nearestName(
  name: string,
  known: Iterable<string>,
  bound = Math.ceil(name.length / LETTERS_PER_EDIT),
): string | undefined {
  let nearest: string | undefined
  let fewest = bound + 1
  for (const candidate of known) {
    const edits = editDistance(name, candidate, bound)
    if (edits < fewest) [nearest, fewest] = [candidate, edits]
  }
  return nearest
}

/** Counts letters that are added, dropped, changed or swapped with their neighbour, up to `bound + 1`. */
export function editDistance(a: string, b: string, bound: number): number {
  if (Math.abs(a.length - b.length) > bound) return bound + 1
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i]
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1]
      let cost = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + (same ? 0 : 1))
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      if (swapped) cost = Math.min(cost, (beforeLast[j - 2] ?? 0) + 1)
      row.push(cost)
    }
    if (Math.min(...row) > bound) return bound + 1
    beforeLast = last
    last = row
  }
  return last[b.length] ?? 0
}
