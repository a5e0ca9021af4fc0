/** Returns a negative number, 0 or a positive one; null for positions of different tapes. `<p>.<n>` is just before `<p>`. */
export function comparePositions(a: string, b: string): number | null {
  const [epochA, seqA, nA = Number.POSITIVE_INFINITY] = a.split('.')
  const [epochB, seqB, nB = Number.POSITIVE_INFINITY] = b.split('.')
  if (epochA !== epochB) return null
  return Math.sign(Number(seqA) - Number(seqB) || Number(nA) - Number(nB) || 0)
}

/** Whether `a` is at or before `b`. False for positions of different tapes. */
export const isNotAfter = (a: string, b: string): boolean => (comparePositions(a, b) ?? 1) <= 0
