import { closeCodes } from '../../protocol/close-codes.ts'
import type { NoticeOf } from '../../protocol/notices.ts'
import { Refusal } from '../../protocol/refusal.ts'
import type { Update } from '../../sdk/generated/messages.ts'
import type { ScriptedConnection } from '../../sdk/testing/scripted-connection.ts'
import { ExactTape } from './exact-tape.ts'
import { BrokenRule, NotApplicable, type RuleText } from './rule-verdict.ts'
import { type ScenarioDriver, WATCH_MS } from './scenario-driver.ts'

export type Rule = RuleText & {
  /** A client may break an optional rule, and conforms all the same. */
  readonly isOptional?: boolean
  /** Plays a scenario. Throws if the client breaks the rule, or if the rule does not apply to it. */
  readonly run: (driver: ScenarioDriver) => Promise<void>
}

const RETRY_MS = 1_500
/** Time by which a client may reconnect too early, because its clock may be a little faster. */
const CLOCK_TOLERANCE_MS = 50
const RETRY_AFTER_S = 2
const FULL_CLOSES = 4
/** Least ratio of the last wait to the shortest. It is small because waits are random, and a busy machine lengthens some. */
const GROWTH_LEAST = 1.5
const LONG_TEXT_CHARS = 1_000_000
const SLOW_MESSAGES = 3_000
const SLOW_MS = 3_000
const NOTICE_MS = 8_000
/** Limit of the time of three heartbeats. If heartbeats are rarer, the scenario does not run: it would take too long. */
const SILENCE_BOUND_MS = 50_000
const SILENCE_MARGIN_MS = 6_000
const DEFAULT_HEARTBEAT_S = 15

const rule = (name: string, section: string, sentence: string, run: Rule['run']): Rule => ({ name, section, sentence, run })
const nameOf = (reason: string): string => reason.replaceAll('_', '-')

const isOverHttp = ({ transport }: ScriptedConnection): boolean => transport !== 'websocket'

/** A client notices a loss with a gap, or reads the message from the history. */
const hasNoticed = ({ client }: ScenarioDriver, { id: lostId }: Update): Promise<boolean> =>
  client.until(
    () => client.lines.some(({ type, id, reason }) => id === lostId || (type === 'gap' && reason === 'missed')),
    NOTICE_MS,
  )

const gapRule = (reason: 'expired' | 'ahead' | 'long'): Rule =>
  rule(`gap-${reason}`, '§3', `The client prints a gap ${reason}, and continues at its id.`, async (driver) => {
    const { tape } = driver
    const live = await driver.openLive()
    const last = tape.end
    live.cut()
    const missed = tape.transfer()
    const back = await driver.nextResume(last)
    const backfill = reason === 'long' ? `/v1/events?symbols=AAPLc&after=${back.since}&through=${missed.id}` : null
    back.accept({ gap: (from) => ({ type: 'gap', id: missed.id, reason, after: from, through: missed.id, backfill }) })
    const isFilled = () => reason === 'long' && driver.client.lines.some(({ id }) => id === missed.id)
    if (!(await driver.client.until(isFilled, 500))) await driver.expectGap(reason, 'the relay sent one')
    const next = tape.transfer()
    await driver.publishAndExpect(back, next)
    back.cut()
    await driver.nextResume(next.id)
  })

const resumesRule = (reason: 'going_away' | 'too_slow' | 'no_pong'): Rule =>
  rule(
    nameOf(reason),
    '§4',
    `After ${closeCodes[reason]} ${reason} the client resumes, not before bye.retry_ms.`,
    async (driver) => {
      const live = await driver.openLive()
      const last = driver.tape.end
      const endedAt = performance.now()
      live.send({ type: 'bye', id: last, reason, retry_ms: RETRY_MS } satisfies NoticeOf<'bye'>)
      live.close(closeCodes[reason], `${reason} ${last}`)
      const missed = driver.tape.transfer()
      const back = await driver.nextResume(last)
      const waitedMs = Math.round(back.arrivedAt - endedAt)
      if (waitedMs < RETRY_MS - CLOCK_TOLERANCE_MS)
        throw new BrokenRule(`the client reconnected after ${waitedMs} ms, and retry_ms was ${RETRY_MS}`)
      back.accept()
      await driver.expectPrinted(missed)
    },
  )

const staysAwayRule = (reason: 'protocol' | 'forbidden' | 'nothing_subscribed'): Rule =>
  rule(nameOf(reason), '§4', `After ${closeCodes[reason]} ${reason} the client does not reconnect unchanged.`, async (driver) => {
    const live = await driver.openLive()
    if (isOverHttp(live)) throw new NotApplicable('a stream over HTTP has no close codes')
    live.close(closeCodes[reason], reason)
    await driver.expectAway(`${closeCodes[reason]} says not to`)
  })

const backoffRule = (reason: 'full' | 'too_many_messages' | 'too_many_connections'): Rule =>
  rule(nameOf(reason), '§4', `After ${closeCodes[reason]} ${reason} the client reconnects with growing waits.`, async (driver) => {
    let connection = await driver.openLive()
    if (isOverHttp(connection)) throw new NotApplicable('a stream over HTTP has no close codes')
    const waitsMs: number[] = []
    for (let nth = 0; nth < FULL_CLOSES; nth += 1) {
      const endedAt = performance.now()
      connection.close(closeCodes[reason], reason)
      connection = await driver.nextConnection()
      waitsMs.push(Math.round(connection.arrivedAt - endedAt))
    }
    const last = waitsMs.at(-1) ?? 0
    if (last < GROWTH_LEAST * Math.min(...waitsMs.slice(0, -1)))
      throw new BrokenRule(`the client waited ${waitsMs.join(', ')} ms: its waits do not grow`)
    connection.accept()
  })

const finalRefusalRule = (status: 400 | 404, reason: string): Rule =>
  rule(nameOf(reason), '§5', `A lasting refusal (${status} ${reason}) ends the client with a message.`, async (driver) => {
    const connection = await driver.firstConnection()
    const message = `The scripted relay refuses this: ${reason}.`
    if (isOverHttp(connection)) connection.refuse(new Refusal(status, reason, message).record)
    else {
      connection.accept()
      connection.send({ type: 'error', code: status, reason, message } satisfies NoticeOf<'error'>)
      connection.close(1000, '')
    }
    await driver.expectAway(`${status} lasts`)
    const isReported = await driver.client.until(
      () => driver.client.stderr.includes(message) || JSON.stringify(driver.client.lines).includes(message),
      WATCH_MS,
    )
    if (!isReported) throw new BrokenRule(`the client did not pass on the message of the refusal: ${message}`)
  })

export const rules: readonly Rule[] = [
  rule('messages', '§1', 'Each message is printed once and unchanged: exact decimals, nulls, unknown fields.', async (driver) => {
    const live = await driver.openLive()
    const { tape } = driver
    const precise = tape.transfer({ amount: '0.000000000000000001', shares: null, multiplier: null, reference_value: '0.00' })
    await driver.publishAndExpect(live, precise, tape.nav(), { ...tape.transfer(), added_later: { exact: '1.50' } } as never)
  }),
  rule(
    'unknown-types',
    '§1',
    'A message of an unknown type does not stop the client, nor does its key in a seal.',
    async (driver) => {
      const live = await driver.openLive()
      const { tape } = driver
      live.send({ type: 'added_later', id: tape.end, anything: [1, null, {}] } as { type: string })
      live.send({ type: 'also_later' })
      const known = tape.transfer()
      await driver.publishAndExpect(live, known)
      const seal = tape.seal(known, { ...known, key: `${known.key}1`, type: 'added_later' } as never)
      await driver.publishAndExpect(live, seal)
      const gap = driver.client.lines.find(({ type }) => type === 'gap')
      if (gap) throw new BrokenRule(`the client printed a gap ${gap.reason}, and the seal ${seal.id} lists a key of another type`)
    },
  ),
  rule('long-messages', '§1', 'A message of a megabyte with characters of several bytes is printed whole.', async (driver) => {
    const live = await driver.openLive()
    if (live.query.has('types') && !live.query.get('types')?.match(/\*|action/))
      throw new NotApplicable('the client selects no type of free text')
    const before = driver.tape.end
    const long = driver.tape.action(LONG_TEXT_CHARS)
    await driver.publishAndExpect(live, ...driver.tape.after(before).filter(({ id }) => id !== long.id), long)
  }),
  rule('endings', '§2', 'The end of a fact is printed: seal, retract and amend.', async (driver) => {
    const live = await driver.openLive()
    const { tape } = driver
    const [kept, amended, dropped] = [tape.transfer(), tape.transfer(), tape.transfer()]
    await driver.publishAndExpect(live, kept, amended, dropped)
    await driver.publishAndExpect(live, tape.retract(dropped), tape.withMemo(amended), tape.seal(kept))
  }),
  rule('chain', '§2', 'By prev the client notices a missing message: it prints a gap missed, or the message.', async (driver) => {
    const live = await driver.openLive()
    if (live.selection.hasValueFilter) throw new NotApplicable('with a value filter, prev proves nothing')
    const lost = driver.tape.transfer()
    live.drop(lost)
    live.publish(driver.tape.transfer())
    if (!(await hasNoticed(driver, lost)))
      throw new BrokenRule(`${lost.id} was not sent, the next transfer names it in prev, and the client printed no gap`)
  }),
  rule('chain-over-resume', '§2', 'The client notices a message that is missing in a replay, too.', async (driver) => {
    const live = await driver.openLive()
    if (live.selection.hasValueFilter) throw new NotApplicable('with a value filter, prev proves nothing')
    const last = driver.tape.end
    live.cut()
    const [lost] = [driver.tape.transfer(), driver.tape.transfer()]
    const back = await driver.nextResume(last)
    back.accept({ dropped: [lost] })
    if (!(await hasNoticed(driver, lost))) throw new BrokenRule(`the replay left out ${lost.id}, and the client printed no gap`)
  }),
  rule('count', '§3', 'With value filters, the client notices a loss by heartbeat.sent, also over a resume.', async (driver) => {
    const live = await driver.openLive()
    if (!live.selection.hasValueFilter) throw new NotApplicable('the client sets no value filter')
    live.drop(driver.tape.transfer())
    live.heartbeat()
    await driver.expectGap('missed', 'a message was lost, and heartbeat.sent counts it')
    const lost = driver.tape.transfer()
    live.drop(lost)
    await driver.publishAndExpect(live, driver.tape.transfer())
    live.cut()
    const back = await driver.nextResume(driver.tape.end)
    back.accept()
    if (back.since !== null && driver.tape.after(back.since).includes(lost)) await driver.expectPrinted(lost)
    await driver.publishAndExpect(back, driver.tape.transfer())
  }),
  rule('no-false-alarm', '§2', 'No false gap: at the start, after a resume, or by a type that begins late.', async (driver) => {
    driver.tape.transfer()
    driver.tape.nav()
    const live = await driver.openLive()
    await driver.publishAndExpect(live, driver.tape.nav(), driver.tape.transfer())
    live.cut()
    const missed = [driver.tape.nav(), driver.tape.transfer()]
    const back = await driver.nextConnection()
    back.accept()
    await driver.expectPrinted(...missed)
    await driver.publishAndExpect(back, driver.tape.nav(), driver.tape.transfer())
    const gap = driver.client.lines.find(({ type }) => type === 'gap')
    if (gap) throw new BrokenRule(`the client printed a gap, and nothing was missing: ${JSON.stringify(gap).slice(0, 200)}`)
  }),
  rule('resume', '§1', 'After a break the client resumes at its last position, or at the last proven one.', async (driver) => {
    const live = await driver.openLive()
    const last = driver.tape.end
    live.cut()
    const missed = [driver.tape.transfer(), driver.tape.transfer()]
    const back = await driver.nextResume(last)
    back.accept()
    await driver.expectPrinted(...missed)
    await driver.publishAndExpect(back, driver.tape.transfer())
    back.cut()
    await driver.nextResume(driver.tape.end)
  }),
  rule('repeats', '§1', 'The client drops a message that is repeated after a resume, by its id.', async (driver) => {
    const live = await driver.openLive()
    const repeated = driver.tape.after(driver.tape.start)
    const last = driver.tape.end
    live.cut()
    const missed = driver.tape.transfer()
    const back = await driver.nextResume(last)
    back.accept({ repeated })
    await driver.expectPrinted(missed)
    await driver.publishAndExpect(back, driver.tape.transfer())
  }),
  gapRule('expired'),
  gapRule('ahead'),
  gapRule('long'),
  rule('gap-epoch', '§3', 'A new tape is a gap epoch. The client continues with positions of the new tape.', async (driver) => {
    const live = await driver.openLive()
    live.cut()
    driver.relay.tape = new ExactTape('renewed')
    const kept = driver.tape.transfer()
    const back = await driver.nextConnection()
    if (back.since === null) throw new BrokenRule('the client reconnected without a position')
    back.accept()
    await driver.expectGap('epoch', 'the relay sent one')
    await driver.expectPrinted(kept)
    back.cut()
    await driver.nextResume(kept.id)
  }),
  rule('silence', '§3', 'After three heartbeats of silence the client leaves the connection, and resumes.', async (driver) => {
    const live = await driver.openLive()
    const heartbeatS = Number(live.query.get('heartbeat') ?? DEFAULT_HEARTBEAT_S)
    const withinMs = 3 * 1_000 * heartbeatS + SILENCE_MARGIN_MS
    if (withinMs > SILENCE_BOUND_MS + SILENCE_MARGIN_MS)
      throw new NotApplicable(`a heartbeat of ${heartbeatS} s is too rare for this kit`)
    const last = driver.tape.end
    live.silence()
    await driver.nextResume(last, withinMs)
  }),
  resumesRule('going_away'),
  resumesRule('no_pong'),
  resumesRule('too_slow'),
  staysAwayRule('protocol'),
  staysAwayRule('forbidden'),
  staysAwayRule('nothing_subscribed'),
  backoffRule('full'),
  backoffRule('too_many_messages'),
  backoffRule('too_many_connections'),
  finalRefusalRule(404, 'unknown_symbol'),
  finalRefusalRule(400, 'bad_parameter'),
  rule('refused-for-now', '§5', 'After a passing refusal the client reconnects, not before Retry-After.', async (driver) => {
    const first = await driver.firstConnection()
    if (!isOverHttp(first)) throw new NotApplicable('the client uses a WebSocket')
    const { record } = new Refusal(503, 'no_list', 'The list has not been read yet.')
    const endedAt = performance.now()
    if (first.transport === 'sse') first.refuseAsEvent(1_000 * RETRY_AFTER_S, { type: 'error', ...record })
    else first.refuse(record, { 'retry-after': String(RETRY_AFTER_S) })
    const back = await driver.nextConnection()
    const waitedMs = Math.round(back.arrivedAt - endedAt)
    if (waitedMs < 1_000 * RETRY_AFTER_S - CLOCK_TOLERANCE_MS)
      throw new BrokenRule(`the client reconnected after ${waitedMs} ms, and was asked to wait ${RETRY_AFTER_S} s`)
    back.accept()
    await driver.publishAndExpect(back, driver.tape.transfer())
  }),
  rule('slow-output', '§4', 'While nobody reads its output, the client loses nothing.', async (driver) => {
    let connection = await driver.openLive()
    driver.client.pauseReading()
    const messages = Array.from({ length: SLOW_MESSAGES }, () => driver.tape.transfer())
    for (const message of messages) connection.publish(message)
    const resumed = async (withinMs: number) => {
      const back = await driver.relay.nextConnection(withinMs)
      if (!back) return
      back.accept()
      connection = back
      await resumed(withinMs)
    }
    await resumed(SLOW_MS)
    driver.client.resumeReading()
    const printed = driver.expectPrinted(...messages)
    void resumed(SLOW_MS)
    await printed
  }),
  {
    ...rule('restart', '§1', 'A client that is killed and started again continues at its position.', async (driver) => {
      const live = await driver.openLive()
      live.heartbeat()
      await driver.publishAndExpect(live, driver.tape.transfer(), driver.tape.transfer())
      await driver.client.end('SIGKILL')
      const missed = [driver.tape.transfer(), driver.tape.transfer()]
      const back = await driver.firstConnection()
      if (back.since === null) throw new NotApplicable('the client keeps no position')
      back.accept()
      await driver.expectPrinted(...missed)
    }),
    isOptional: true,
  },
]
