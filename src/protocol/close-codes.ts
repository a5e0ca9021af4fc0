/** The first two digits tell a client what to do. 40xx: change the request first. 41xx: reconnect with backoff. 42xx: resume. */
export const closeCodes = {
  protocol: 4000,
  forbidden: 4003,
  nothing_subscribed: 4009,
  full: 4100,
  too_many_messages: 4101,
  too_many_connections: 4102,
  lagging: 4103,
  going_away: 4200,
  no_pong: 4201,
  too_slow: 4202,
} as const

export type CloseReason = keyof typeof closeCodes

/** Returns the close code of a reason; empty if the client ended the connection. */
export const closeCodeOf = (reason: CloseReason | 'client'): number | '' => (reason === 'client' ? '' : closeCodes[reason])

/** Limit of a close reason in RFC 6455. */
const REASON_BOUND_BYTES = 123

/** Writes `<word> <position>`, so that the client can resume from the position. */
export const formatCloseReason = (reason: CloseReason, position: string | null): string =>
  (position ? `${reason} ${position}` : reason).slice(0, REASON_BOUND_BYTES)
