const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** Formats a duration as `0.2 s`, `39 s`, `4 min`, `23 h` or `3 d`. */
export function formatDuration(ms: number): string {
  const size = Math.max(0, ms)
  if (size < SECOND) return `${(Math.floor(size / 100) / 10).toFixed(1)} s`
  if (size < 2 * MINUTE) return `${Math.floor(size / SECOND)} s`
  if (size < 2 * HOUR) return `${Math.floor(size / MINUTE)} min`
  if (size < 2 * DAY) return `${Math.floor(size / HOUR)} h`
  return `${Math.floor(size / DAY)} d`
}

/** Formats a duration without tenths of a second, which would flicker, and in minutes from the first one on. */
export const formatAge = (ms: number): string => (ms >= MINUTE && ms < 2 * MINUTE ? '1 min' : formatDuration(Math.max(SECOND, ms)))

/** Formats a duration in two units, as `2 d 4 h`, `1 h 4 min` or `4 min 9 s`. */
export function formatCountdown(ms: number): string {
  const left = Math.max(0, ms)
  if (left >= DAY) return `${Math.floor(left / DAY)} d ${Math.floor((left % DAY) / HOUR)} h`
  if (left >= HOUR) return `${Math.floor(left / HOUR)} h ${Math.floor((left % HOUR) / MINUTE)} min`
  const seconds = `${Math.floor((left % MINUTE) / SECOND)} s`
  return left < MINUTE ? seconds : `${Math.floor(left / MINUTE)} min ${seconds}`
}

const formatWith = (parts: Intl.DateTimeFormatOptions) =>
  new Intl.DateTimeFormat('en', { hour: '2-digit', minute: '2-digit', hourCycle: 'h23', ...parts })
const clockFormat = formatWith({})
const secondsFormat = formatWith({ second: '2-digit' })
const weekdayFormat = formatWith({ weekday: 'short' })
const dateFormat = formatWith({ day: 'numeric', month: 'short' })

/** Formats a time as `13:10:19` in the reader's time zone. */
export const formatClock = (time: string): string => secondsFormat.format(new Date(time))

export const formatTapeTime = (time: string): string => `${formatClock(time)}.${time.slice(20, 23)}`

/** Returns the shortest text that names the moment: `13:10`, `Fri 20:00` or `Nov 4 20:00`. */
export function formatMoment(time: string, nowMs: number): string {
  const date = new Date(time)
  const distance = Math.abs(nowMs - date.getTime())
  // Before and after midnight it is another day.
  if (distance < 12 * HOUR && date.getDate() === new Date(nowMs).getDate()) return clockFormat.format(date)
  return (distance < 6 * DAY ? weekdayFormat : dateFormat).format(date).replace(',', '')
}

const zoneFormat = formatWith({ timeZoneName: 'short' })

/** The short name of the reader's time zone at a time, such as `UTC` or `GMT-3`. */
export const zoneName = (time: string): string =>
  zoneFormat.formatToParts(new Date(time)).find(({ type }) => type === 'timeZoneName')?.value ?? ''
