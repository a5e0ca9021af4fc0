/** First second of the year 10000, which RFC 3339 cannot write. */
export const NEVER_SECONDS = Date.UTC(10_000, 0) / 1_000

const DAY_S = 86_400
const twoDigits = Array.from({ length: 60 }, (_, number) => String(number).padStart(2, '0'))
let lastDay = { number: Number.NaN, text: '' }

/** Writes a time before the year 10000. `Date` takes ten times as long, and a page of bars has a thousand times, mostly of a day. */
export function isoFromSeconds(second: number): string {
  const number = Math.floor(second / DAY_S)
  if (number !== lastDay.number)
    lastDay = { number, text: new Date(number * DAY_S * 1_000).toISOString().slice(0, 'YYYY-MM-DDT'.length) }
  const rest = second - number * DAY_S
  return `${lastDay.text}${twoDigits[Math.floor(rest / 3_600)]}:${twoDigits[Math.floor(rest / 60) % 60]}:${twoDigits[rest % 60]}.000Z`
}

export const isoFromSecondsOrNull = (second: number | null): string | null =>
  second === null || second >= NEVER_SECONDS ? null : isoFromSeconds(second)

/** Chain time in seconds. All times after the year 9999 become one number, which means never. */
export const clampSeconds = (second: bigint): number => (second < BigInt(NEVER_SECONDS) ? Number(second) : NEVER_SECONDS)
