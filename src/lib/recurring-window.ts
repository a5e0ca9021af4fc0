/** The last `lengthMs` of every `periodMs` of the clock. */
export type RecurringWindow = { readonly lengthMs: number; readonly periodMs: number }

export const isWithin = ({ lengthMs, periodMs }: RecurringWindow, atMs: number): boolean => atMs % periodMs >= periodMs - lengthMs

/** Outside a window, the end of the next one. */
export const windowEndMs = ({ periodMs }: RecurringWindow, atMs: number): number => (Math.floor(atMs / periodMs) + 1) * periodMs
