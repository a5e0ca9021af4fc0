import { Refusal } from '../../../protocol/refusal.ts'

/** Refusals that several routes give, so that a client gets the same sentence from each. */

export const goingAway = new Refusal(503, 'going_away', 'This server is about to stop; retry in a moment.')
export const internalError = new Refusal(500, 'internal', 'Something failed on this side; try again.')
