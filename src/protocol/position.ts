/** A position is written `<epoch>.<seq>`. In the sealed view a seal becomes several messages: the n-th is `<epoch>.<seq>.<n>`. */
export type Position = TapePosition & { readonly epoch: string }

/** The place after message `seq`. With `n`, the place after the n-th message that the sealed view sends before `seq`. */
export type TapePosition = { readonly seq: number; readonly n: number | null }

/** Limit of a position. No relay gives out a longer one. */
export const POSITION_BOUND_BYTES = 256

const positionPattern = /^([0-9a-z]{1,32})\.(0|[1-9]\d{0,39})(?:\.([1-9]\d{0,8}))?$/

export const formatPosition = (epoch: string, seq: number, n: number | null = null): string =>
  n === null ? `${epoch}.${seq}` : `${epoch}.${seq}.${n}`

export function parsePosition(text: string): Position | null {
  const match = positionPattern.exec(text)
  if (!match) return null
  const [, epoch = '', seq = '', n] = match
  // No relay gave out a number beyond 2^53, and all numbers beyond the end of the tape have the same effect.
  return { epoch, seq: Math.min(Number(seq), Number.MAX_SAFE_INTEGER), n: n === undefined ? null : Number(n) }
}

/** Returns the number after which a stream resumes. Outside the sealed view, `<p>.<n>` means just before `<p>`. */
export const resumeAfter = ({ seq, n }: TapePosition): number => (n === null ? seq : Math.max(0, seq - 1))
