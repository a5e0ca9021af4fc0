/**
 * A place on the tape: `<epoch>.<seq>`, or `<epoch>.<seq>.<n>` inside the sealed view, where one seal stands for
 * several messages. Opaque to clients.
 */
export type Position = TapePosition & { readonly epoch: string }

/** Up to and with the message `seq`; or, with `n`, up to and with the n-th that the sealed view gives before it. */
export type TapePosition = { readonly seq: number; readonly n: number | null }

/** Longer than any position that was ever given out; what is longer is somebody else's. */
export const POSITION_BOUND_BYTES = 256

const positionPattern = /^([0-9a-z]{1,32})\.(0|[1-9]\d{0,39})(?:\.([1-9]\d{0,8}))?$/

export const formatPosition = (epoch: string, seq: number, n: number | null = null): string =>
  n === null ? `${epoch}.${seq}` : `${epoch}.${seq}.${n}`

export function parsePosition(text: string): Position | null {
  const match = positionPattern.exec(text)
  if (!match) return null
  const [, epoch = '', seq = '', n] = match
  // A number that was never given is beyond the end, however long it is.
  return { epoch, seq: Math.min(Number(seq), Number.MAX_SAFE_INTEGER), n: n === undefined ? null : Number(n) }
}

/** The sequence number after which to go on: outside the sealed view `<p>.<n>` means just before `<p>`. */
export const resumeAfter = ({ seq, n }: TapePosition): number => (n === null ? seq : Math.max(0, seq - 1))
