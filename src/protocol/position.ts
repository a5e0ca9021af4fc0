/**
 * A place on the tape: `<epoch>.<seq>`. In the sealed view one seal stands for several messages; the n-th of them is
 * `<epoch>.<seq>.<n>`.
 */
export type Position = TapePosition & { readonly epoch: string }

/** Up to and including message `seq`; with `n`, only up to the n-th message that the sealed view sends before it. */
export type TapePosition = { readonly seq: number; readonly n: number | null }

/** Longer than any position that a relay gives out, so a longer one is not ours. */
export const POSITION_BOUND_BYTES = 256

const positionPattern = /^([0-9a-z]{1,32})\.(0|[1-9]\d{0,39})(?:\.([1-9]\d{0,8}))?$/

export const formatPosition = (epoch: string, seq: number, n: number | null = null): string =>
  n === null ? `${epoch}.${seq}` : `${epoch}.${seq}.${n}`

export function parsePosition(text: string): Position | null {
  const match = positionPattern.exec(text)
  if (!match) return null
  const [, epoch = '', seq = '', n] = match
  // A number beyond 2^53 was never given out. Any safe number beyond the end means the same.
  return { epoch, seq: Math.min(Number(seq), Number.MAX_SAFE_INTEGER), n: n === undefined ? null : Number(n) }
}

/** The sequence number to resume after. Outside the sealed view `<p>.<n>` means just before `<p>`. */
export const resumeAfter = ({ seq, n }: TapePosition): number => (n === null ? seq : Math.max(0, seq - 1))
