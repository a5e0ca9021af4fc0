/** A name with more than one wrong letter of so many is another name. */
const LETTERS_PER_EDIT = 3

/** The known name with the fewest edits, at most `bound` of them; of several the first. */
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

/** Number of letters added, dropped, changed or swapped with their neighbour; at most `bound + 1`. */
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
