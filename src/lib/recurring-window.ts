/** A time that comes again and again: the last `lengthMs` of every `periodMs` of the clock. */
export type RecurringWindow = { readonly lengthMs: number; readonly periodMs: number }

export const isWithin = ({ lengthMs, periodMs }: RecurringWindow, atMs: number): boolean => atMs % periodMs >= periodMs - lengthMs

/** The end of the window that contains a time, or of the next one. */
export const windowEndMs = ({ periodMs }: RecurringWindow, atMs: number): number => (Math.floor(atMs / periodMs) + 1) * periodMs
