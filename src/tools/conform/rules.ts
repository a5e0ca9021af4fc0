import { closeCodes } from '../../protocol/close-codes.ts'
import type { NoticeOf } from '../../protocol/notices.ts'
import { Refusal } from '../../protocol/refusal.ts'
import { BrokenRule, NotApplicable, type ScenarioStage, WATCH_MS } from './scenario-stage.ts'
import type { ScriptedConnection } from './scripted-relay.ts'
import { ScriptedTape } from './scripted-tape.ts'

/** A rule of the contract, and the scenario that shows whether a client keeps it. */
export type Rule = {
  readonly name: string
  readonly section: string
  readonly sentence: string
  /** Some clients need not keep it. */
  readonly isOptional?: boolean
  /** Throws where the rule is broken, or does not apply. */
  readonly run: (stage: ScenarioStage) => Promise<void>
}

const RETRY_MS = 1_500
/** A clock of the client may tick a little faster than ours. */
const CLOCK_TOLERANCE_MS = 50
const RETRY_AFTER_S = 2
const FULL_CLOSES = 4
/** Random waits vary, and a busy machine lengthens some. The last of a growing row is still clearly longer than the shortest. */
const GROWTH_LEAST = 1.5
const LONG_TEXT_CHARS = 1_000_000
const SLOW_MESSAGES = 3_000
const SLOW_MS = 3_000
/** A client that asks for rare heartbeats would be watched for too long. */
const SILENCE_BOUND_MS = 50_000
const SILENCE_MARGIN_MS = 6_000
const DEFAULT_HEARTBEAT_S = 15

const isOverHttp = ({ transport }: ScriptedConnection): boolean => transport !== 'websocket'

/** Says goodbye as the relay does, and ends the connection. */
function sayBye(connection: ScriptedConnection, reason: 'going_away' | 'too_slow' | 'no_pong', id: string, retryMs: number): void {
  connection.send({ type: 'bye', id, reason, retry_ms: retryMs } satisfies NoticeOf<'bye'>)
  connection.close(closeCodes[reason], `${reason} ${id}`)
}

const gapRule = (reason: 'expired' | 'ahead' | 'long'): Rule => ({
  name: `gap-${reason}`,
  section: '§3',
  sentence: `A gap ${reason} is passed on, and the client goes on at its id.`,
  run: async (stage) => {
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
  },
})

const comesBackRule = (name: string, reason: 'going_away' | 'too_slow' | 'no_pong'): Rule => ({
  name,
  section: '§4',
  sentence: `After ${closeCodes[reason]} ${reason} the client comes back with its position, and not before bye.retry_ms.`,
  run: async (stage) => {
    const live = await stage.openLive()
    const last = stage.tape.end
    const endedAt = performance.now()
    sayBye(live, reason, last, RETRY_MS)
    const missed = stage.tape.transfer()
    const back = await stage.nextResume(last)
    const waitedMs = Math.round(back.arrivedAt - endedAt)
    if (waitedMs < RETRY_MS - CLOCK_TOLERANCE_MS)
      throw new BrokenRule(`the client came back after ${waitedMs} ms, and retry_ms was ${RETRY_MS}`)
    back.accept()
    await stage.expectPrinted(missed)
  },
})

const staysAwayRule = (name: string, reason: 'protocol' | 'forbidden' | 'nothing_subscribed'): Rule => ({
  name,
  section: '§4',
  sentence: `After ${closeCodes[reason]} ${reason} the client does not come back unchanged.`,
  run: async (stage) => {
    const live = await stage.openLive()
    if (isOverHttp(live)) throw new NotApplicable('a stream over HTTP has no close codes')
    live.close(closeCodes[reason], reason)
    await stage.expectAway(`${closeCodes[reason]} says not to`)
  },
})

const backoffRule = (name: string, reason: 'full' | 'too_many_messages' | 'too_many_connections'): Rule => ({
  name,
  section: '§4',
  sentence: `After ${closeCodes[reason]} ${reason} the client comes back with a growing wait.`,
  run: async (stage) => {
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
  },
})

const finalRefusalRule = (name: string, status: 400 | 404, reason: string): Rule => ({
  name,
  section: '§5',
  sentence: `A refusal that would come again (${status} ${reason}) ends the client with a message.`,
  run: async (stage) => {
    const connection = await stage.firstConnection()
    const message = `The scripted relay refuses this: ${reason}.`
    if (isOverHttp(connection)) connection.refuse(new Refusal(status, reason, message).record)
    else {
      connection.accept()
      connection.send({ type: 'error', code: status, reason, message } satisfies NoticeOf<'error'>)
      connection.close(1000, '')
    }
    await stage.expectAway(`${status} would come again`)
    const isReported = await stage.client.until(
      () => stage.client.stderr.includes(message) || JSON.stringify(stage.client.lines).includes(message),
      WATCH_MS,
    )
    if (!isReported) throw new BrokenRule(`the client did not pass on the message of the refusal: ${message}`)
  },
})

export const rules: readonly Rule[] = [
  {
    name: 'messages',
    section: '§1',
    sentence: 'Each message comes out once and as it was sent: exact decimals, nulls, unknown fields.',
    run: async (stage) => {
      const live = await stage.openLive()
      const { tape } = stage
      const precise = tape.transfer({ amount: '0.000000000000000001', shares: null, multiplier: null, reference_value: '0.00' })
      await stage.publishAndExpect(live, precise, tape.nav(), { ...tape.transfer(), added_later: { exact: '1.50' } } as never)
    },
  },
  {
    name: 'unknown-types',
    section: '§1',
    sentence: 'A message of an unknown type does not stop the client.',
    run: async (stage) => {
      const live = await stage.openLive()
      live.send({ type: 'added_later', id: stage.tape.end, anything: [1, null, {}] } as { type: string })
      live.send({ type: 'also_later' })
      await stage.publishAndExpect(live, stage.tape.transfer())
    },
  },
  {
    name: 'long-messages',
    section: '§1',
    sentence: 'A message of a megabyte with characters of several bytes comes out whole.',
    run: async (stage) => {
      const live = await stage.openLive()
      if (live.query.has('types') && !live.query.get('types')?.match(/\*|action/))
        throw new NotApplicable('the client selects no type of free text')
      const before = stage.tape.end
      const long = stage.tape.action(LONG_TEXT_CHARS)
      await stage.publishAndExpect(live, ...stage.tape.after(before).filter(({ id }) => id !== long.id), long)
    },
  },
  {
    name: 'endings',
    section: '§2',
    sentence: 'How a fact ends is passed on: seal, retract and amend.',
    run: async (stage) => {
      const live = await stage.openLive()
      const { tape } = stage
      const [kept, amended, dropped] = [tape.transfer(), tape.transfer(), tape.transfer()]
      await stage.publishAndExpect(live, kept, amended, dropped)
      await stage.publishAndExpect(live, tape.retract(dropped), tape.amend(amended), tape.seal(kept))
    },
  },
  {
    name: 'chain',
    section: '§2',
    sentence: 'A message that is missing although the stream goes on is noticed by prev: a gap missed, or the message itself.',
    run: async (stage) => {
      const live = await stage.openLive()
      if (live.hasValueFilter) throw new NotApplicable('with a value filter, prev proves nothing')
      const lost = stage.tape.transfer()
      live.drop(lost)
      live.publish(stage.tape.transfer())
      const isFilled = () => stage.client.lines.some(({ id }) => id === lost.id)
      const isNoticed = () => isFilled() || stage.client.lines.some(({ type, reason }) => type === 'gap' && reason === 'missed')
      if (!(await stage.client.until(isNoticed, 8_000)))
        throw new BrokenRule(`${lost.id} was not sent, the next transfer names it in prev, and the client printed no gap`)
    },
  },
  {
    name: 'chain-over-resume',
    section: '§2',
    sentence: 'A resume is part of the chain: what a replay leaves out is noticed too.',
    run: async (stage) => {
      const live = await stage.openLive()
      if (live.hasValueFilter) throw new NotApplicable('with a value filter, prev proves nothing')
      const last = stage.tape.end
      live.cut()
      const [lost] = [stage.tape.transfer(), stage.tape.transfer()]
      const back = await stage.nextResume(last)
      back.accept({ dropped: [lost] })
      const isNoticed = () =>
        stage.client.lines.some(({ type, id, reason }) => id === lost.id || (type === 'gap' && reason === 'missed'))
      if (!(await stage.client.until(isNoticed, 8_000)))
        throw new BrokenRule(`the replay left out ${lost.id}, and the client printed no gap`)
    },
  },
  {
    name: 'count',
    section: '§3',
    sentence: 'With value filters a loss is noticed by heartbeat.sent, and a client that resumes before it passes it on.',
    run: async (stage) => {
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
    },
  },
  {
    name: 'no-false-alarm',
    section: '§2',
    sentence: 'Nothing is called missing that was sent: not at the start, not after a resume, not by types that begin late.',
    run: async (stage) => {
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
    },
  },
  {
    name: 'resume',
    section: '§1',
    sentence: 'After a broken connection the client continues at its last position or where a heartbeat last proved it complete.',
    run: async (stage) => {
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
    },
  },
  {
    name: 'repeats',
    section: '§1',
    sentence: 'A message that comes again after a resume is dropped by its id.',
    run: async (stage) => {
      const live = await stage.openLive()
      const repeated = stage.tape.after(stage.tape.start)
      const last = stage.tape.end
      live.cut()
      const missed = stage.tape.transfer()
      const back = await stage.nextResume(last)
      back.accept({ repeated })
      await stage.expectPrinted(missed)
      await stage.publishAndExpect(back, stage.tape.transfer())
    },
  },
  gapRule('expired'),
  gapRule('ahead'),
  gapRule('long'),
  {
    name: 'gap-epoch',
    section: '§3',
    sentence: 'A new tape is a gap epoch. The client goes on with the positions of the new tape.',
    run: async (stage) => {
      const live = await stage.openLive()
      live.cut()
      stage.relay.tape = new ScriptedTape('renewed')
      const kept = stage.tape.transfer()
      const back = await stage.nextConnection()
      if (back.since === null) throw new BrokenRule('the client came back without a position')
      back.accept()
      await stage.expectGap(['epoch'], 'the relay sent one')
      await stage.expectPrinted(kept)
      back.cut()
      await stage.nextResume(kept.id)
    },
  },
  {
    name: 'silence',
    section: '§3',
    sentence: 'A connection on which nothing comes for three heartbeats is left, and resumed.',
    run: async (stage) => {
      const live = await stage.openLive()
      const heartbeatS = Number(live.query.get('heartbeat') ?? DEFAULT_HEARTBEAT_S)
      const withinMs = 3 * 1_000 * heartbeatS + SILENCE_MARGIN_MS
      if (withinMs > SILENCE_BOUND_MS + SILENCE_MARGIN_MS)
        throw new NotApplicable(`a heartbeat of ${heartbeatS} s is too rare for this kit`)
      const last = stage.tape.end
      live.silence()
      await stage.nextResume(last, withinMs)
    },
  },
  comesBackRule('going-away', 'going_away'),
  comesBackRule('no-pong', 'no_pong'),
  comesBackRule('too-slow', 'too_slow'),
  staysAwayRule('protocol', 'protocol'),
  staysAwayRule('forbidden', 'forbidden'),
  staysAwayRule('nothing-subscribed', 'nothing_subscribed'),
  backoffRule('full', 'full'),
  backoffRule('too-many-messages', 'too_many_messages'),
  backoffRule('too-many-connections', 'too_many_connections'),
  finalRefusalRule('unknown-symbol', 404, 'unknown_symbol'),
  finalRefusalRule('bad-parameter', 400, 'bad_parameter'),
  {
    name: 'refused-for-now',
    section: '§5',
    sentence: 'A refusal that passes by itself is no end: the client comes back, and not before Retry-After.',
    run: async (stage) => {
      const first = await stage.firstConnection()
      if (!isOverHttp(first)) throw new NotApplicable('the client uses a WebSocket')
      const { record } = new Refusal(503, 'no_list', 'The list has not been read yet.')
      const endedAt = performance.now()
      if (first.transport === 'sse') first.refuseAsEvent(1_000 * RETRY_AFTER_S, { type: 'error', ...record })
      else first.refuse(record, { 'retry-after': String(RETRY_AFTER_S) })
      const back = await stage.nextConnection()
      const waitedMs = Math.round(back.arrivedAt - endedAt)
      if (waitedMs < 1_000 * RETRY_AFTER_S - CLOCK_TOLERANCE_MS)
        throw new BrokenRule(`the client came back after ${waitedMs} ms, and was asked to wait ${RETRY_AFTER_S} s`)
      back.accept()
      await stage.publishAndExpect(back, stage.tape.transfer())
    },
  },
  {
    name: 'slow-output',
    section: '§4',
    sentence: 'While nobody reads its output the client loses nothing.',
    run: async (stage) => {
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
    },
  },
  {
    name: 'restart',
    section: '§1',
    sentence: 'A client that is killed and started again continues where it was.',
    isOptional: true,
    run: async (stage) => {
      const live = await stage.openLive()
      live.heartbeat()
      await stage.publishAndExpect(live, stage.tape.transfer(), stage.tape.transfer())
      await stage.client.end('SIGKILL')
      const missed = [stage.tape.transfer(), stage.tape.transfer()]
      const back = await stage.firstConnection()
      if (back.since === null) throw new NotApplicable('the client keeps no position')
      back.accept()
      await stage.expectPrinted(...missed)
    },
  },
]
