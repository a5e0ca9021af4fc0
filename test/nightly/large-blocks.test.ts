import { connect } from 'node:net'
import { expect, it, vi } from 'vitest'
import { median } from '../bench/percentiles.ts'
import { handshakeRequest } from '../integration/http/raw-websocket-client.ts'
import { isNightly } from '../support/test-length.ts'
import type { LargeBlocksCommand, LargeBlocksReply } from './large-blocks-process.ts'
import { imageFlags, openWorker } from './monitored-relay.ts'

vi.setConfig({ testTimeout: 120_000 })

const LOGS = isNightly ? 20_000 : 5_000
const LOOP_BOUND_MS = 50
/** The longest turn is the median of these rounds. */
const ROUNDS = 3
/** So many listeners of one selection that their bursts are compressed. */
const LISTENERS = 130

const everything = 'symbols=*&snapshot=false'
/** No transfer has this value, so each key of a seal and of a retract is looked up. */
const filtered = `${everything}&types=transfer&min_value=1000000000`
const sealed = `${everything}&stage=sealed`
const queries = [
  ['a replay', `/v1/stream?${everything}&since=start&format=ndjson`],
  ['a replay of the sealed view', `/v1/stream?${sealed}&since=start&format=ndjson`],
  ['a replay with a value filter', `/v1/stream?${filtered}&since=start&format=ndjson`],
  ['a page of the sealed view', '/v1/events?stage=sealed&limit=1000&order=desc'],
  ['a page with a value filter', '/v1/events?types=transfer&min_value=1000000000&limit=1000'],
  ['an export of the sealed view', '/v1/events?stage=sealed&format=ndjson'],
] as const

/** What the first listeners offer; all others have their messages compressed together. */
const offers = ['permessage-deflate; server_no_context_takeover', null]

/** A listener that reads everything, and looks at nothing after `live`. */
function listen(url: string, query: string, offer: string | null) {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  socket.write(handshakeRequest(`/v1/ws?${query}`, { 'sec-websocket-extensions': offer }))
  const live = new Promise<void>((resolve) => {
    let text = ''
    socket.on('data', (bytes: Buffer) => {
      if (text.includes('"type":"live"')) return
      text += bytes.toString('latin1')
      if (text.includes('"type":"live"')) resolve()
    })
  })
  return { socket, live }
}

/** Reads an answer up to its end, or a stream up to its `live`. */
async function read(url: string): Promise<void> {
  const { body } = await fetch(url)
  let end = ''
  for await (const bytes of body ?? []) {
    end = (end + Buffer.from(bytes).toString('latin1')).slice(-4_096)
    if (end.includes('"type":"live"')) return
  }
}

it(`a block of ${LOGS} logs of one token never holds the loop of the edge for ${LOOP_BOUND_MS} ms`, async (test) => {
  const edge = openWorker<LargeBlocksCommand, LargeBlocksReply>(test, './large-blocks-process.ts', {
    flags: imageFlags,
    isFree: true,
  })
  const { url, key } = await edge.command({ do: 'open', logs: LOGS })
  const turns = new Map<string, number[]>()
  const record = (name: string, ms: number) => turns.set(name, [...(turns.get(name) ?? []), ms])
  const write = async (what: 'logs' | 'amends' | 'seal' | 'retracts', block: number, name: string) => {
    record(name, (await edge.command({ do: 'write', what, block })).longestMs)
  }
  for (const what of ['amends', 'seal'] as const) await write(what, 1, `${what}, nobody listens`)
  for (const [name, path] of [...queries, ['the life of a key', `/v1/events/${key}`] as const]) {
    for (let round = 0; round < ROUNDS; round += 1) {
      await read(`${url}${path}`)
      record(name, (await edge.command({ do: 'takeLongest' })).longestMs)
    }
  }
  const sockets = [everything, filtered, sealed].flatMap((query) =>
    Array.from({ length: LISTENERS }, (_, nth) => listen(url, query, offers[nth] ?? 'permessage-deflate')),
  )
  test.onTestFinished(() => {
    for (const { socket } of sockets) socket.destroy()
  })
  await Promise.all(sockets.map(({ live }) => live))
  await edge.command({ do: 'takeLongest' })
  for (let block = 2; block < 2 + ROUNDS; block += 1)
    for (const what of ['logs', 'amends', 'seal', 'retracts'] as const) await write(what, block, `${what}, live`)
  const longest = [...turns].map(([name, ms]) => [name, median(ms)] as const)
  process.stdout.write(`${longest.map(([name, ms]) => `${name}: ${ms.toFixed(0)} ms`).join('; ')}\n`)
  expect(longest.filter(([, ms]) => ms >= LOOP_BOUND_MS)).toEqual([])
  expect(sockets.filter(({ socket }) => socket.readyState !== 'open')).toEqual([])
})
