const format = new Intl.DateTimeFormat('en-US', {
  timeZone: 'America/New_York',
  hourCycle: 'h23',
  year: 'numeric',
  month: 'numeric',
  day: 'numeric',
  hour: 'numeric',
  minute: 'numeric',
  second: 'numeric',
})
const STANDARD_OFFSET_SECONDS = 5 * 3_600

/** What the clocks in New York show at a Unix time: the Unix time at which a clock on UTC shows the same. */
export function newYorkClock(time: number): number {
  const fields = format.format(time * 1_000).match(/\d+/g) ?? []
  const [month = 0, day = 0, year = 0, hour = 0, minute = 0, second = 0] = fields.map(Number)
  return Date.UTC(year, month - 1, day, hour, minute, second) / 1_000
}

/** The Unix time at which the clocks in New York show this. Not for 01:00 to 03:00, when they may be changed. */
export function timeInNewYork(shown: number): number {
  const inWinter = shown + STANDARD_OFFSET_SECONDS
  return inWinter - (newYorkClock(inWinter) - shown)
}
