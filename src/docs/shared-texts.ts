import { closeCodes } from '../protocol/close-codes.ts'

/** A sentence that every document must contain. */
export const CAVEAT =
  'Presence of a record does not imply trading availability or eligibility; a reference value is not a price to trade at.'

/** The introduction of each document. */
export const serviceDescription = `A real-time feed of tokenized stocks: every on-chain event the moment it is pre-confirmed. Every pre-confirmation ends sealed or retracted, every event is published once on one numbered tape, and every gap is reported. Reconnect with the last id and continue after it. No account; a key only if the operator of this relay requires one.`

export const closeCodesText = `The close code says whether to reconnect: 40xx: do not reconnect before you have changed the request; 41xx: reconnect with backoff; 42xx: reconnect with your last position after bye.retry_ms (${Object.entries(
  closeCodes,
)
  .map(([reason, code]) => `${code} ${reason}`)
  .join(', ')}); the close reason is the word and the position.`
