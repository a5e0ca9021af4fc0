import { closeCodes } from '../../protocol/close-codes.ts'
import type { NoticeOf } from '../../protocol/notices.ts'
import { Refusal } from '../../protocol/refusal.ts'
import type { Update } from '../../protocol/updates.ts'
import { BrokenRule, NotApplicable, type ScenarioStage, WATCH_MS } from './scenario-stage.ts'
import type { ScriptedConnection } from './scripted-relay.ts'
import { ScriptedTape } from './scripted-tape.ts'

export type Rule = {
  readonly name: string
  readonly section: string
  readonly sentence: string
  /** A client may break an optional rule, and conforms all the same. */
  readonly isOptional?: boolean
  /** Plays a scenario. Throws if the client breaks the rule, or if the rule does not apply to it. */
  readonly run: (stage: ScenarioStage) => Promise<void>
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

function sayBye(connection: ScriptedConnection, reason: 'going_away' | 'too_slow' | 'no_pong', id: string, retryMs: number): void {
  connection.send({ type: 'bye', id, reason, retry_ms: retryMs } satisfies NoticeOf<'bye'>)
  connection.close(closeCodes[reason], `${reason} ${id}`)
}

/** Whether the client notices a loss: it prints a gap, or reads the message from the history. */
const hasNoticed = ({ client }: ScenarioStage, { id: lostId }: Update): Promise<boolean> =>
  client.until(
    () => client.lines.some(({ type, id, reason }) => id === lostId || (type === 'gap' && reason === 'missed')),
    NOTICE_MS,
  )

const gapRule = (reason: 'expired' | 'ahead' | 'long'): Rule =>
  rule(`gap-${reason}`, '§3', `The client prints a gap ${reason}, and continues at its id.`, async (stage) => {
    const { tape } = stage
    const live = await stage.openLive()
    const last = tape.end
    live.cut()
    const missed = tape.transfer()
    const back = await stage.nextResume(last)
    const backfill = reason === 'long' ? `/v1/events?symbols=AAPLc&after=${back.since}&through=${missed.id}` : null
    back.accept({ gap: (from) => ({ type: 'gap', id: missed.id, reason, after: from, through: missed.id, backfill }) })
    const isFilled = () => reason === 'long' && stage.client.lines.some(({ id }) => id === missed.id)
    if (!(await stage.client.until(isFilled, 500))) await stage.expectGap([reason], 'the relay sent one')
    const next = tape.transfer()
    await stage.publishAndExpect(back, next)
    back.cut()
    await stage.nextResume(next.id)
  })

const resumesRule = (reason: 'going_away' | 'too_slow' | 'no_pong'): Rule =>
  rule(
    nameOf(reason),
    '§4',
    `After ${closeCodes[reason]} ${reason} the client resumes, not before bye.retry_ms.`,
    async (stage) => {
      const live = await stage.openLive()
      const last = stage.tape.end
      const endedAt = performance.now()
      sayBye(live, reason, last, RETRY_MS)
      const missed = stage.tape.transfer()
      const back = await stage.nextResume(last)
      const waitedMs = Math.round(back.arrivedAt - endedAt)
      if (waitedMs < RETRY_MS - CLOCK_TOLERANCE_MS)
        throw new BrokenRule(`the client reconnected after ${waitedMs} ms, and retry_ms was ${RETRY_MS}`)
      back.accept()
      await stage.expectPrinted(missed)
    },
  )

const staysAwayRule = (reason: 'protocol' | 'forbidden' | 'nothing_subscribed'): Rule =>
  rule(nameOf(reason), '§4', `After ${closeCodes[reason]} ${reason} the client does not reconnect unchanged.`, async (stage) => {
    const live = await stage.openLive()
    if (isOverHttp(live)) throw new NotApplicable('a stream over HTTP has no close codes')
    live.close(closeCodes[reason], reason)
    await stage.expectAway(`${closeCodes[reason]} says not to`)
  })

const backoffRule = (reason: 'full' | 'too_many_messages' | 'too_many_connections'): Rule =>
  rule(nameOf(reason), '§4', `After ${closeCodes[reason]} ${reason} the client reconnects with growing waits.`, async (stage) => {
    let connection = await stage.openLive()
    if (isOverHttp(connection)) throw new NotApplicable('a stream over HTTP has no close codes')
    const waitsMs: number[] = []
    for (let nth = 0; nth < FULL_CLOSES; nth += 1) {
      const endedAt = performance.now()
      connection.close(closeCodes[reason], reason)
      connection = await stage.nextConnection()
      waitsMs.push(Math.round(connection.arrivedAt - endedAt))
    }
    const last = waitsMs.at(-1) ?? 0
    if (last < GROWTH_LEAST * Math.min(...waitsMs.slice(0, -1)))
      throw new BrokenRule(`the client waited ${waitsMs.join(', ')} ms: its waits do not grow`)
    connection.accept()
  })

const finalRefusalRule = (status: 400 | 404, reason: string): Rule =>
  rule(nameOf(reason), '§5', `A lasting refusal (${status} ${reason}) ends the client with a message.`, async (stage) => {
    const connection = await stage.firstConnection()
    const message = `The scripted relay refuses this: ${reason}.`
    if (isOverHttp(connection)) connection.refuse(new Refusal(status, reason, message).record)
    else {
      connection.accept()
      connection.send({ type: 'error', code: status, reason, message } satisfies NoticeOf<'error'>)
      connection.close(1000, '')
    }
    await stage.expectAway(`${status} lasts`)
    const isReported = await stage.client.until(
      () => stage.client.stderr.includes(message) || JSON.stringify(stage.client.lines).includes(message),
      WATCH_MS,
    )
    if (!isReported) throw new BrokenRule(`the client did not pass on the message of the refusal: ${message}`)
  })

export const rules: readonly Rule[] = [
  rule('messages', '§1', 'Each message is printed once and unchanged: exact decimals, nulls, unknown fields.', async (stage) => {
    const live = await stage.openLive()
    const { tape } = stage
    const precise = tape.transfer({ amount: '0.000000000000000001', shares: null, multiplier: null, reference_value: '0.00' })
    await stage.publishAndExpect(live, precise, tape.nav(), { ...tape.transfer(), added_later: { exact: '1.50' } } as never)
  }),
  rule('unknown-types', '§1', 'A message of an unknown type does not stop the client.', async (stage) => {
    const live = await stage.openLive()
    live.send({ type: 'added_later', id: stage.tape.end, anything: [1, null, {}] } as { type: string })
    live.send({ type: 'also_later' })
    await stage.publishAndExpect(live, stage.tape.transfer())
  }),
  rule('long-messages', '§1', 'A message of a megabyte with characters of several bytes is printed whole.', async (stage) => {
    const live = await stage.openLive()
    if (live.query.has('types') && !live.query.get('types')?.match(/\*|action/))
      throw new NotApplicable('the client selects no type of free text')
    const before = stage.tape.end
    const long = stage.tape.action(LONG_TEXT_CHARS)
    await stage.publishAndExpect(live, ...stage.tape.after(before).filter(({ id }) => id !== long.id), long)
  }),
  rule('endings', '§2', 'The end of a fact is printed: seal, retract and amend.', async (stage) => {
    const live = await stage.openLive()
    const { tape } = stage
    const [kept, amended, dropped] = [tape.transfer(), tape.transfer(), tape.transfer()]
    await stage.publishAndExpect(live, kept, amended, dropped)
    await stage.publishAndExpect(live, tape.retract(dropped), tape.amend(amended), tape.seal(kept))
  }),
  rule('chain', '§2', 'By prev the client notices a missing message: it prints a gap missed, or the message.', async (stage) => {
    const live = await stage.openLive()
    if (live.hasValueFilter) throw new NotApplicable('with a value filter, prev proves nothing')
    const lost = stage.tape.transfer()
    live.drop(lost)
    live.publish(stage.tape.transfer())
    if (!(await hasNoticed(stage, lost)))
      throw new BrokenRule(`${lost.id} was not sent, the next transfer names it in prev, and the client printed no gap`)
  }),
  rule('chain-over-resume', '§2', 'The client notices a message that is missing in a replay, too.', async (stage) => {
    const live = await stage.openLive()
    if (live.hasValueFilter) throw new NotApplicable('with a value filter, prev proves nothing')
    const last = stage.tape.end
    live.cut()
    const [lost] = [stage.tape.transfer(), stage.tape.transfer()]
    const back = await stage.nextResume(last)
    back.accept({ dropped: [lost] })
    if (!(await hasNoticed(stage, lost))) throw new BrokenRule(`the replay left out ${lost.id}, and the client printed no gap`)
  }),
  rule('count', '§3', 'With value filters, the client notices a loss by heartbeat.sent, also over a resume.', async (stage) => {
    const live = await stage.openLive()
    if (!live.hasValueFilter) throw new NotApplicable('the client sets no value filter')
    live.drop(stage.tape.transfer())
    live.heartbeat()
    await stage.expectGap(['missed'], 'a message was lost, and heartbeat.sent counts it')
    const lost = stage.tape.transfer()
    live.drop(lost)
    await stage.publishAndExpect(live, stage.tape.transfer())
    live.cut()
    const back = await stage.nextResume(stage.tape.end)
    back.accept()
    if (back.since !== null && stage.tape.after(back.since).includes(lost)) await stage.expectPrinted(lost)
    await stage.publishAndExpect(back, stage.tape.transfer())
  }),
  rule('no-false-alarm', '§2', 'No false gap: at the start, after a resume, or by a type that begins late.', async (stage) => {
    stage.tape.transfer()
    stage.tape.nav()
    const live = await stage.openLive()
    await stage.publishAndExpect(live, stage.tape.nav(), stage.tape.transfer())
    live.cut()
    const missed = [stage.tape.nav(), stage.tape.transfer()]
    const back = await stage.nextConnection()
    back.accept()
    await stage.expectPrinted(...missed)
    await stage.publishAndExpect(back, stage.tape.nav(), stage.tape.transfer())
    const gap = stage.client.lines.find(({ type }) => type === 'gap')
    if (gap) throw new BrokenRule(`the client printed a gap, and nothing was missing: ${JSON.stringify(gap).slice(0, 200)}`)
  }),
  rule('resume', '§1', 'After a break the client resumes at its last position, or at the last proven one.', async (stage) => {
    const live = await stage.openLive()
    const last = stage.tape.end
    live.cut()
    const missed = [stage.tape.transfer(), stage.tape.transfer()]
    const back = await stage.nextResume(last)
    back.accept()
    await stage.expectPrinted(...missed)
    await stage.publishAndExpect(back, stage.tape.transfer())
    back.cut()
    await stage.nextResume(stage.tape.end)
  }),
  rule('repeats', '§1', 'The client drops a message that is repeated after a resume, by its id.', async (stage) => {
    const live = await stage.openLive()
    const repeated = stage.tape.after(stage.tape.start)
    const last = stage.tape.end
    live.cut()
    const missed = stage.tape.transfer()
    const back = await stage.nextResume(last)
    back.accept({ repeated })
    await stage.expectPrinted(missed)
    await stage.publishAndExpect(back, stage.tape.transfer())
  }),
  gapRule('expired'),
  gapRule('ahead'),
  gapRule('long'),
  rule('gap-epoch', '§3', 'A new tape is a gap epoch. The client continues with positions of the new tape.', async (stage) => {
    const live = await stage.openLive()
    live.cut()
    stage.relay.tape = new ScriptedTape('renewed')
    const kept = stage.tape.transfer()
    const back = await stage.nextConnection()
    if (back.since === null) throw new BrokenRule('the client reconnected without a position')
    back.accept()
    await stage.expectGap(['epoch'], 'the relay sent one')
    await stage.expectPrinted(kept)
    back.cut()
    await stage.nextResume(kept.id)
  }),
  rule('silence', '§3', 'After three heartbeats of silence the client leaves the connection, and resumes.', async (stage) => {
    const live = await stage.openLive()
    const heartbeatS = Number(live.query.get('heartbeat') ?? DEFAULT_HEARTBEAT_S)
    const withinMs = 3 * 1_000 * heartbeatS + SILENCE_MARGIN_MS
    if (withinMs > SILENCE_BOUND_MS + SILENCE_MARGIN_MS)
      throw new NotApplicable(`a heartbeat of ${heartbeatS} s is too rare for this kit`)
    const last = stage.tape.end
    live.silence()
    await stage.nextResume(last, withinMs)
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
  rule('refused-for-now', '§5', 'After a passing refusal the client reconnects, not before Retry-After.', async (stage) => {
    const first = await stage.firstConnection()
    if (!isOverHttp(first)) throw new NotApplicable('the client uses a WebSocket')
    const { record } = new Refusal(503, 'no_list', 'The list has not been read yet.')
    const endedAt = performance.now()
    if (first.transport === 'sse') first.refuseAsEvent(1_000 * RETRY_AFTER_S, { type: 'error', ...record })
    else first.refuse(record, { 'retry-after': String(RETRY_AFTER_S) })
    const back = await stage.nextConnection()
    const waitedMs = Math.round(back.arrivedAt - endedAt)
    if (waitedMs < 1_000 * RETRY_AFTER_S - CLOCK_TOLERANCE_MS)
      throw new BrokenRule(`the client reconnected after ${waitedMs} ms, and was asked to wait ${RETRY_AFTER_S} s`)
    back.accept()
    await stage.publishAndExpect(back, stage.tape.transfer())
  }),
  rule('slow-output', '§4', 'While nobody reads its output, the client loses nothing.', async (stage) => {
    let connection = await stage.openLive()
    stage.client.pauseReading()
    const messages = Array.from({ length: SLOW_MESSAGES }, () => stage.tape.transfer())
    for (const message of messages) connection.publish(message)
    const resumed = async (withinMs: number) => {
      const back = await stage.relay.nextConnection(withinMs)
      if (!back) return
      back.accept()
      connection = back
      await resumed(withinMs)
    }
    await resumed(SLOW_MS)
    stage.client.resumeReading()
    const printed = stage.expectPrinted(...messages)
    void resumed(SLOW_MS)
    await printed
  }),
  {
    ...rule('restart', '§1', 'A client that is killed and started again continues at its position.', async (stage) => {
      const live = await stage.openLive()
      live.heartbeat()
      await stage.publishAndExpect(live, stage.tape.transfer(), stage.tape.transfer())
      await stage.client.end('SIGKILL')
      const missed = [stage.tape.transfer(), stage.tape.transfer()]
      const back = await stage.firstConnection()
      if (back.since === null) throw new NotApplicable('the client keeps no position')
      back.accept()
      await stage.expectPrinted(...missed)
    }),
    isOptional: true,
  },
]
