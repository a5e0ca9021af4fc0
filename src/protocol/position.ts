/** Written `<epoch>.<seq>`. In the sealed view a seal becomes several messages, and the n-th of them is `<epoch>.<seq>.<n>`. */
export type Position = TapePosition & { readonly epoch: string }

/** Includes message `seq`. With `n`, it ends at the n-th message that the sealed view sends before `seq`. */
export type TapePosition = { readonly seq: number; readonly n: number | null }

/** No relay gives out a longer position. */
export const POSITION_BOUND_BYTES = 256

const positionPattern = /^([0-9a-z]{1,32})\.(0|[1-9]\d{0,39})(?:\.([1-9]\d{0,8}))?$/

export const formatPosition = (epoch: string, seq: number, n: number | null = null): string =>
  n === null ? `${epoch}.${seq}` : `${epoch}.${seq}.${n}`

export function parsePosition(text: string): Position | null {
  const match = positionPattern.exec(text)
  if (!match) return null
  const [, epoch = '', seq = '', n] = match
  // No relay gave out a number beyond 2^53. All numbers beyond the end of the tape are handled alike.
  return { epoch, seq: Math.min(Number(seq), Number.MAX_SAFE_INTEGER), n: n === undefined ? null : Number(n) }
}

/** Sequence number to resume after. Outside the sealed view `<p>.<n>` means just before `<p>`. */
export const resumeAfter = ({ seq, n }: TapePosition): number => (n === null ? seq : Math.max(0, seq - 1))
