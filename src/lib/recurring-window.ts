/** A window of time that repeats: the last `lengthMs` of each period. Periods are counted from time 0 of the clock. */
export type RecurringWindow = { readonly lengthMs: number; readonly periodMs: number }

export const isWithin = ({ lengthMs, periodMs }: RecurringWindow, atMs: number): boolean => atMs % periodMs >= periodMs - lengthMs

/** Returns the end of the current window; outside a window, the end of the next one. */
export const windowEndMs = ({ periodMs }: RecurringWindow, atMs: number): number => (Math.floor(atMs / periodMs) + 1) * periodMs
