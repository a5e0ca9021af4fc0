type Units = ReadonlyMap<string, number>

export const timeUnits: Units = new Map([
  ['ms', 1],
  ['s', 1_000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
])

export const sizeUnits: Units = new Map([
  ['B', 1],
  ['KiB', 2 ** 10],
  ['MiB', 2 ** 20],
  ['GiB', 2 ** 30],
])

/** Returns an amount in the smallest unit: 15000 for `15s`. Only 0 needs no unit. NaN if the text is wrong. */
export function amountOf(text: string, units: Units): number {
  const [, digits, unit = ''] = /^(\d{1,16})([A-Za-z]*)$/.exec(text) ?? []
  if (digits === undefined) return Number.NaN
  return unit === '' && Number(digits) === 0 ? 0 : Number(digits) * (units.get(unit) ?? Number.NaN)
}

export const durationMs = (text: string): number => amountOf(text, timeUnits)

/** Writes an amount in the largest unit in which it is a whole number. */
export function amountText(amount: number, units: Units): string {
  const [unit = '', size = 1] = [...units].findLast(([, size]) => amount >= size && amount % size === 0) ?? [...units][0] ?? []
  return `${amount / size}${unit}`
}
