import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { DiscardPolicy, jetstreamManager, type StreamConfig } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { filter, firstValueFrom } from 'rxjs'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Hex } from '../../../../../src/lib/hex.ts'
import type { BarRow } from '../../../../../src/relay/tape/bars/bar-row.ts'
import { encodeBatch } from '../../../../../src/relay/tape/batch-message.ts'
import { NatsLink } from '../../../../../src/relay/tape/jetstream/nats-link.ts'
import { NatsStream } from '../../../../../src/relay/tape/jetstream/nats-stream.ts'
import { openJetStreamTape } from '../../../../../src/relay/tape/jetstream/open-jetstream-tape.ts'
import { Notes } from '../../../../../src/relay/tape/notes.ts'
import { NotLeadingError, TapeError } from '../../../../../src/relay/tape/tape.ts'
import { TapeStore } from '../../../../../src/relay/tape/tape-store.ts'
import { type TestTape, withWriter } from '../../../../support/local-tape.ts'
import { hasNats, NatsServer } from '../../../../support/nats-server.ts'
import { type OpenTapeFixture, tapeContract } from '../tape-contract.ts'
import { createOwnFolder, openReopenable, openTestTape, unboundedOptions } from '../test-tape.ts'
import { apple, navChange, oneOfEach, otherLog, tesla, transfer } from '../update-drafts.ts'

const NOON = Date.parse('2026-11-20T12:00:00Z')

type StreamProcess = Awaited<ReturnType<typeof openJetStreamTape>>

/** The store of a process, with its writer. */
const tapeOf = ({ copy, writer, close }: StreamProcess) => withWriter(copy.store, writer, close)

/** A stream that an operator changes. */
type RefusingStream = {
  readonly tape: TestTape
  readonly process: StreamProcess
  readonly warnings: readonly string[]
  readonly update: (change: Partial<StreamConfig>) => Promise<void>
  /** Gives the server another configuration. */
  readonly reload: (config: string) => void
}

describe.skipIf(!hasNats)('the tape over NATS JetStream', () => {
  let nats: NatsServer
  beforeAll(async () => {
    nats = await NatsServer.start()
  })
  afterAll(() => nats.remove())

  const settingsOf = (natsStream: string, url = nats.url) => ({
    ...{ natsUrl: [url], natsCredentials: undefined, natsStream, natsReplicas: 1 },
  })

  /** A process of a stream, which ends with the test. */
  const openProcess = async (stream: string, more: Partial<Parameters<typeof openJetStreamTape>[0]> = {}, url = nats.url) => {
    const opened = await openJetStreamTape({
      ...{ ...unboundedOptions, dataDir: ':memory:', uptime: () => performance.now(), mayLead: true },
      ...{ log: () => {}, onUnreadable: () => {}, onReset: () => {}, onFailure: () => {} },
      nats: settingsOf(stream, url),
      ...more,
    })
    onTestFinished(() => opened.close().catch(() => {}))
    return { ...opened, tape: tapeOf(opened) }
  }

  const openLeader = async (...process: Parameters<typeof openProcess>) => {
    const opened = await openProcess(...process)
    await untilLeading(opened)
    return opened
  }
  const untilLeading = ({ writer }: StreamProcess) => vi.waitFor(() => expect(writer.isLeading).toBe(true))

  /** Another connection to a stream, without a tape. */
  const openStream = (stream: string) => {
    const link = new NatsLink({ ...settingsOf(stream), topicPrefix: 'other' }, () => {})
    const opened = new NatsStream({ ...settingsOf(stream), maxAgeMs: 1e9, maxMessages: 1e6 }, link)
    onTestFinished(() => link.close())
    return opened
  }

  it('waits for a position of another process, unless nobody can have it', async () => {
    const server = await NatsServer.start()
    onTestFinished(() => server.remove())
    const { tape: leader } = await openLeader('REACHED', {}, server.url)
    await leader.append(oneOfEach({ at: NOON }))
    const { copy: follower } = await openProcess('REACHED', { mayLead: false }, server.url)
    await vi.waitFor(() => expect(follower.point.isComplete).toBe(true))
    expect(await follower.reach(leader.end())).toBe(true)
    const { next } = leader
    const [isReached] = await Promise.all([follower.reach(next), leader.append([transfer({ at: NOON })])])
    expect(isReached).toBe(true)
    expect(await follower.reach(next + 1_000)).toBe(true)
    await server.kill()
    expect(await follower.reach(next + 1_000)).toBe(false)
  })

  const openFixture =
    (losesFile: boolean): OpenTapeFixture =>
    async (bounds = {}) => {
      const name = `T${randomUUID().replaceAll('-', '')}`
      const fail = (failure: unknown) => {
        throw failure
      }
      return openReopenable(async (dataDir, now) => {
        const opened = await openJetStreamTape({
          ...{ ...unboundedOptions, ...bounds, dataDir, now, uptime: () => performance.now(), mayLead: true },
          ...{ log: () => {}, onUnreadable: () => {}, onFailure: fail, onReset: fail },
          nats: settingsOf(name),
        })
        await firstValueFrom(opened.writer.leadership.pipe(filter((isLeading) => isLeading)))
        return tapeOf(opened)
      }, losesFile)
    }

  it('has the same bytes as the embedded tape, but for epoch and numbers', async () => {
    const drafts = [...oneOfEach({ at: NOON }), ...oneOfEach({ at: NOON + 1 })]
    const textsOf = async (open: OpenTapeFixture) => {
      const fixture = await open()
      await fixture.tape.append(drafts.slice(0, 5))
      await fixture.tape.append(drafts.slice(5))
      const entries = await fixture.tape.readAfter(0, 1_000)
      const first = entries[0]?.seq ?? 0
      await fixture.close()
      return entries.map(({ text }) => text.replace(/"[0-9a-z]{6}\.(\d+)"/g, (_, seq) => `"epoch.${Number(seq) - first}"`))
    }
    const texts = await textsOf(openFixture(false))
    expect(texts).toHaveLength(drafts.length)
    expect(texts).toEqual(await textsOf(openTestTape))
  })

  it.each([
    ['a user and a password', ['--user', 'relay', '--pass', 'se:cret'], 'relay:se%3Acret'],
    ['a token', ['--auth', 'se-cret'], 'se-cret'],
  ])('reaches a server that asks for %s, and no server with wrong ones', async (_, flags, login) => {
    const server = await NatsServer.start(flags)
    onTestFinished(() => server.remove())
    const lines: unknown[] = []
    const connect = (user: string) => {
      const settings = settingsOf('T', server.url.replace('//', `//${user}@`))
      const link = new NatsLink({ ...settings, topicPrefix: 't' }, (...line) => lines.push(line))
      onTestFinished(() => link.close())
      return link.whenConnected(1_000)
    }
    expect(await connect(login)).toBe(true)
    expect(lines).toEqual([['nats_connected', expect.anything()]])
    expect(await connect('nobody:wrong')).toBe(false)
    expect(JSON.stringify(lines)).toMatch(/nats_unreachable.*Authorization/i)
    expect(JSON.stringify(lines)).not.toContain('wrong')
  })

  it('ends the process where its copy cannot be written, and sends nothing again', async () => {
    const dir = createOwnFolder()
    const failures: unknown[] = []
    const { tape, copy, writer } = await openLeader('FULL', { dataDir: dir, onFailure: (failure) => failures.push(failure) })
    // The message is written when NATS answers its writer, not when the stream delivers it.
    vi.spyOn(copy, 'receive').mockReturnValue(true)
    TapeStore.prototype.close.call(copy.store)
    await expect(tape.append([transfer({ at: NOON })])).rejects.toThrow()
    await vi.waitFor(() => expect(failures).toEqual([expect.any(Error)]))
    expect(writer.isLeading).toBe(false)
  })

  describe('evicts nothing that is open', () => {
    const openWith200 = async (stream: string) => {
      const process = await openLeader(stream, { tapeMaxMessages: 39 })
      const { tape, copy } = process
      await tape.append([navChange({ at: NOON })])
      const keepAfter = tape.end()
      const open200 = Array.from({ length: 200 }, (_, nth) => transfer({ at: NOON, nth: nth + 1 }))
      await tape.append(open200, new Notes(), keepAfter)
      const untilWritten = (messages: number, { seq } = copy.point) =>
        vi.waitFor(() => expect(copy.point.seq).toBeGreaterThanOrEqual(seq + messages), 5_000)
      return { ...process, untilWritten, kept: () => tape.readAfter(keepAfter, 1_000).length }
    }

    it('while its leader has nothing to write', async () => {
      const { untilWritten, kept } = await openWith200('OPEN_AT_REST')
      await untilWritten(2)
      expect(kept()).toBe(200)
    })

    it('with a checkpoint', async () => {
      const { copy, writer, untilWritten, kept } = await openWith200('OPEN_AT_CHECKPOINT')
      const checkpoint = vi.spyOn(copy, 'checkpoint')
      // One that follows the last too soon is not written.
      await vi.waitFor(() => {
        writer.offerCheckpoint()
        expect(checkpoint).toHaveBeenCalled()
      }, 5_000)
      await untilWritten(1)
      expect(kept()).toBe(200)
    })
  })

  it('takes over the new epoch of another process where the stream has lost messages', async () => {
    const dir = createOwnFolder()
    const { tape, copy } = await openLeader('LOST', { dataDir: dir })
    const { epochBeganAt } = copy.store
    await tape.append([transfer({ at: NOON })])
    await tape.close()
    const connection = await connect({ servers: nats.url.replace('nats://', '') })
    const { streams } = await jetstreamManager(connection)
    onTestFinished(() => connection.close())
    await streams.delete('LOST')
    const other = openStream('LOST')
    await other.link.whenConnected(1_000)
    await other.ensure()
    const batch = { epoch: 'another', epochBeganAt: epochBeganAt + 1, after: 7, first: 0, texts: [], notes: {}, bars: [] }
    await other.publish('other.1', encodeBatch({ ...batch, keepAfter: null, lastSeqs: [], resigns: false }), 0)
    const { tape: reopened } = await openProcess('LOST', { dataDir: dir })
    expect([reopened.epoch, reopened.end()]).toEqual(['another', 7])
  })

  it('gives up the lead when a batch of another process comes, as after a pause', async () => {
    const { copy, writer } = await openLeader('PAUSED')
    const other = openStream('PAUSED')
    const changes: boolean[] = []
    writer.leadership.subscribe((isLeading) => changes.push(isLeading))
    const batch = {
      epoch: copy.store.epoch,
      epochBeganAt: copy.store.epochBeganAt,
      after: copy.store.end(),
      first: 0,
      texts: [],
      notes: {},
      bars: [],
    }
    const bytes = encodeBatch({ ...batch, keepAfter: null, lastSeqs: null, resigns: false })
    await vi.waitFor(async () => other.publish('other.1', bytes, (await other.extent())?.last ?? 0))
    await vi.waitFor(() => expect(changes.slice(0, 2)).toEqual([true, false]))
  })

  it('does not take a batch twice, under its own id or another', async () => {
    const { tape, copy } = await openLeader('TWICE')
    const other = openStream('TWICE')
    await other.link.whenConnected(1_000)
    await tape.append([transfer({ at: NOON })])
    const { seq, id } = copy.point
    const stored = await other.stored(seq)
    if (!stored?.bytes) throw new Error('no batch is stored')
    for (const again of [id, 'another.1']) await other.publish(again, stored.bytes, seq - 1).catch(() => null)
    await tape.append([transfer({ at: NOON, nth: 1 })])
    expect(await tape.readAfter(0, 10)).toHaveLength(2)
    const extent = await other.extent()
    const ids = await Promise.all(
      Array.from({ length: (extent?.last ?? 0) - seq + 1 }, async (_, nth) => (await other.stored(seq + nth))?.id),
    )
    expect(ids.filter((one) => one === id || one === 'another.1')).toEqual([id])
  })

  const startServer = async (config: string) => {
    const file = join(createOwnFolder(), 'nats.conf')
    writeFileSync(file, config)
    const server = await NatsServer.start(['-c', file])
    onTestFinished(() => server.remove())
    return { server, file }
  }

  describe('bars', () => {
    const DAY_S = 86_400
    const minuteRow = (address: Hex, day: number, minute: number, edition = 1): BarRow => [
      address,
      day * DAY_S + minute * 60,
      JSON.stringify([edition, edition, null, 1, []]),
    ]
    const writeBars = (tape: TestTape, ...bars: readonly BarRow[]) =>
      tape.writer.append({ first: tape.next, updates: [], notes: new Notes(), bars, keepAfter: 0 })
    const allBars = (tape: TestTape) =>
      [apple, tesla].flatMap((address) => tape.readBars(address, { since: 0, until: 100 * DAY_S }))
    const subjectsOf = async (stream: string) => {
      const connection = await connect({ servers: nats.url.replace('nats://', '') })
      onTestFinished(() => connection.close())
      const { streams } = await jetstreamManager(connection)
      const info = await streams.info(`${stream}_BARS`, { subjects_filter: '>' })
      return Object.keys(info.state.subjects ?? {}).sort()
    }
    const rows = [minuteRow(apple, 1, 3), minuteRow(apple, 1, 5), minuteRow(apple, 2, 0), minuteRow(tesla, 2, 9)]

    it('are one message for each token and day, which a new file has too', async () => {
      const leader = await openLeader('DAYS')
      await writeBars(leader.tape, ...rows)
      await vi.waitFor(async () => expect(await subjectsOf('DAYS')).toHaveLength(3))
      const revised = minuteRow(apple, 1, 3, 2)
      await writeBars(leader.tape, revised)
      expect(await subjectsOf('DAYS')).toEqual([
        `days_bars.${tesla}.1970-01-03`,
        `days_bars.${apple}.1970-01-02`,
        `days_bars.${apple}.1970-01-03`,
      ])
      await vi.waitFor(async () => {
        const { tape } = await openProcess('DAYS', { mayLead: false })
        await vi.waitFor(() => expect(allBars(tape)).toEqual([revised, ...rows.slice(1)]))
      })
    })

    it('of a leader that lost its file are those of the stream and its own', async () => {
      const first = await openLeader('HALVES')
      await writeBars(first.tape, ...rows)
      await vi.waitFor(async () => expect(await subjectsOf('HALVES')).toHaveLength(3))
      await first.close()
      const next = await openLeader('HALVES')
      const own = minuteRow(apple, 1, 8)
      await writeBars(next.tape, own)
      const all = [...rows.slice(0, 2), own, ...rows.slice(2)]
      await vi.waitFor(() => expect(allBars(next.tape)).toEqual(all))
      await vi.waitFor(async () => {
        const { tape } = await openProcess('HALVES', { mayLead: false })
        await vi.waitFor(() => expect(allBars(tape)).toEqual(all))
      })
    })

    it('of a day that is too long for a message are in several', async () => {
      const { server } = await startServer('max_payload: 20000')
      const leader = await openLeader('LONG', {}, server.url)
      // Random digits, which no compression makes short.
      const long = Array.from({ length: 1_000 }, (_, nth): BarRow => {
        const [address, start] = minuteRow(apple, 1, nth)
        return [address, start, JSON.stringify([1, 1, randomUUID() + randomUUID(), 1, []])]
      })
      await writeBars(leader.tape, ...long)
      await vi.waitFor(
        async () => {
          const { tape } = await openProcess('LONG', { mayLead: false }, server.url)
          await vi.waitFor(() => expect(allBars(tape)).toEqual(long))
        },
        { timeout: 20_000 },
      )
    })
  })

  it('gives up the lead where too much waits for a server that hangs, and leads again later', async () => {
    const server = await NatsServer.start()
    onTestFinished(() => server.remove())
    const hung = await openLeader('HUNG', {}, server.url)
    const { tape, writer } = hung
    const [first] = await tape.append([transfer({ at: NOON })])
    server.signal('SIGSTOP')
    const thousand = Array.from({ length: 1_000 }, (_, nth) => transfer({ at: NOON, nth }))
    const appends = Array.from({ length: 60 }, () => tape.append(thousand).catch((failure: unknown) => failure))
    expect(writer.isLeading).toBe(false)
    for (const failure of await Promise.all(appends)) expect(failure).toBeInstanceOf(NotLeadingError)
    server.signal('SIGCONT')
    await untilLeading(hung)
    const [next] = await tape.append([transfer({ at: NOON })])
    const entries = await tape.readAfter(0, 10_000)
    // The server may have stored the message that was on its way, whole.
    expect([0, 1_000, 2_000]).toContain(entries.length - 2)
    expect([entries[0], entries.at(-1)]).toEqual([first, next])
  })

  const denied = 'authorization { users = [{ user: relay, password: secret, permissions: { publish: { deny: "refused" } } }] }'
  const refused = async (use: (refusing: RefusingStream) => Promise<void>, config = '') => {
    const { server, file } = await startServer(config)
    const url = server.url.replace('//', '//relay:secret@')
    const warnings: string[] = []
    const log = (kind: string, detail: unknown) => void warnings.push([kind, ...Object.values(detail ?? {})].join(': '))
    const process = await openProcess('REFUSED', { log }, url)
    const connection = await connect({ servers: url.replace(/.*@/, ''), user: 'relay', pass: 'secret' })
    onTestFinished(() => connection.close())
    const { streams } = await jetstreamManager(connection)
    const update = async (change: Partial<StreamConfig>) => void (await streams.update('REFUSED', change))
    const reload = (changed: string) => {
      writeFileSync(file, changed)
      server.signal('SIGHUP')
    }
    await use({ tape: process.tape, process, warnings, update, reload })
  }

  it.each<[string, RegExp, (refusing: RefusingStream) => unknown, ((refusing: RefusingStream) => unknown) | null]>([
    [
      'is full and drops nothing',
      /maximum messages exceeded/,
      ({ update }) => update({ max_msgs: 1, discard: DiscardPolicy.New }),
      ({ update }) => update({ max_msgs: 1_000, discard: DiscardPolicy.Old }),
    ],
    ['is sealed', /sealed/, ({ update }) => update({ sealed: true }), null],
    [
      'has another subject',
      /no stream takes the subject refused/,
      ({ update }) => update({ subjects: ['elsewhere'] }),
      ({ update }) => update({ subjects: ['refused'] }),
    ],
    ['takes nothing from this user', /Permissions Violation for Publish to "refused"/, ({ reload }) => reload(denied), null],
  ])('says in the words of NATS that nothing is stored where the stream %s', async (_, words, cause, end) => {
    await refused(
      async (refusing) => {
        const { tape, process, warnings } = refusing
        const { copy } = process
        await untilLeading(process)
        await tape.append([transfer({ at: NOON })])
        expect([copy.refusal, tape.isDurable]).toEqual([null, true])
        await cause(refusing)
        const appended = tape.append([transfer({ at: NOON, nth: 1 })]).catch(() => null)
        await vi.waitFor(() => expect(copy.refusal).toMatch(words))
        expect([tape.isDurable, warnings.at(-1)]).toEqual([false, expect.stringMatching(words)])
        if (!end) return
        await end(refusing)
        await appended
        await vi.waitFor(() => expect([copy.refusal, tape.isDurable]).toEqual([null, true]))
        expect(await tape.readAfter(0, 10)).toHaveLength(2)
      },
      denied.replace('deny: "refused"', 'deny: "nothing"'),
    )
  })

  it('says in the words of NATS that nothing is stored where it has no space', async () => {
    await refused(
      async ({ tape, process, warnings }) => {
        await vi.waitFor(() => expect(process.copy.refusal).toMatch(/insufficient|resource|storage/))
        expect([tape.isDurable, warnings.at(-1)]).toEqual([false, expect.stringMatching(/insufficient|resource|storage/)])
      },
      `jetstream { max_file_store: 100 }\n${denied.replace('deny: "refused"', 'deny: "nothing"')}`,
    )
  })

  const openLimited = async (config: string) => {
    const { server, file } = await startServer(config)
    const open = (mayLead: boolean) => openProcess('LIMITED', { mayLead }, server.url)
    const limitStream = async (max_msg_size: number) => {
      const connection = await connect({ servers: server.url.replace('nats://', '') })
      const { streams } = await jetstreamManager(connection)
      const subjects = ['limited']
      await streams.update('LIMITED', { max_msg_size }).catch(() => streams.add({ name: 'LIMITED', subjects, max_msg_size }))
      await connection.close()
    }
    const restart = async (changed: string) => {
      await server.kill()
      writeFileSync(file, changed)
      await server.start()
    }
    return { open, limitStream, restart }
  }

  type Limited = Awaited<ReturnType<typeof openLimited>>
  it.each<[string, string, ((limited: Limited) => Promise<void>) | null]>([
    ['the server has', 'max_payload: 20000', null],
    ['the server has after a restart', '', ({ restart }) => restart('max_payload: 20000')],
    ['the stream has from now on', '', ({ limitStream }) => limitStream(20_000)],
  ])('stores a large batch, and one large update, in parts that keep to the limit that %s', async (_, config, change) => {
    const limited = await openLimited(config)
    const opened = await limited.open(true)
    const { tape } = opened
    await untilLeading(opened)
    await tape.append([transfer({ at: NOON })])
    await change?.(limited)
    await tape.append(Array.from({ length: 600 }, (_, nth) => transfer({ at: NOON, nth: nth + 2 })))
    await tape.append([{ ...otherLog({ at: NOON }), data: `0x${'ab'.repeat(50_000)}` }])
    const written = await tape.readAfter(0, 1_000)
    expect(written).toHaveLength(602)
    const { tape: reader } = await limited.open(false)
    expect(await reader.readAfter(0, 1_000)).toEqual(written)
  })

  it.each<[string, string, number | null]>([
    ['max_payload of NATS is 2000 bytes, and the tape needs at least 16384: raise it', 'max_payload: 2000', null],
    ['max_msg_size of the stream LIMITED is 16383 bytes, and the tape needs at least 16384: raise it', '', 16_383],
  ])('refuses to start to write with one line: %s', async (line, config, streamLimit) => {
    const limited = await openLimited(config)
    if (streamLimit !== null) await limited.limitStream(streamLimit)
    await expect(limited.open(true)).rejects.toThrow(new TapeError(line))
    // An edge reads what was stored before.
    await limited.open(false)
  })

  it('says which limit is too low where a server comes back with it', async () => {
    const limited = await openLimited('')
    const opened = await limited.open(true)
    const { copy } = opened
    await untilLeading(opened)
    await limited.restart('max_payload: 2000')
    await vi.waitFor(() => expect(copy.refusal).toMatch(/max_payload of NATS is 2000 bytes/))
    await limited.restart('')
    await vi.waitFor(() => expect(copy.refusal).toBe(null))
  })

  it('begins a new epoch in an empty folder after a purge, once no leader is heard', async () => {
    const { tape } = await openLeader('PURGED', { random: Math.random })
    await tape.append([transfer({ at: NOON })])
    await tape.close()
    const connection = await connect({ servers: nats.url.replace('nats://', '') })
    const { streams } = await jetstreamManager(connection)
    await streams.purge('PURGED')
    await connection.close()
    const { tape: other } = await openLeader('PURGED', { random: Math.random })
    expect(other.epoch).not.toBe(tape.epoch)
    expect(await other.append([transfer({ at: NOON })])).toHaveLength(1)
  })

  tapeContract('the tape over NATS', openFixture(false))
  tapeContract('a tape over NATS whose file is lost', openFixture(true))
})
