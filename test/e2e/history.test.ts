import { expect, it, onTestFinished } from 'vitest'
import { Snapshots } from '../../src/protocol/token-list.ts'
import { listenNdjson, listenSse, listenWs, type TestListener } from '../support/test-listener.ts'
import { fetchDocumented, openTestStack, transfer } from '../support/test-stack.ts'
import { openedOnce } from './gateway/node-and-gateway.ts'
import { readAllPages, readLines, tapeTexts } from './history-reader.ts'
import { closeAfterTest } from './listeners.ts'

const atRest = openedOnce((lifecycle) => openTestStack({}, lifecycle))
/** Longer replays than this become a gap. */
const MAX_REPLAY = 3

it.each([
  ['/v1/events?limit=0', 400, 'bad_parameter'],
  ['/v1/events?after=zzzzz9.1', 410, 'epoch'],
  ['/v1/events?symbols=APPL', 404, 'unknown_symbol'],
  ['/v1/snapshot?symbols=APPL', 404, 'unknown_symbol'],
  ['/v1/snapshot?stage=sealed', 400, 'unknown_parameter'],
  ['/v1/events/%E0%A4%A', 400, 'bad_parameter'],
  [`/v1/events/7-0x${'a'.repeat(64)}-0`, 404, 'unknown_key'],
  [`/v1/events/${'9'.repeat(40)}-0x${'a'.repeat(64)}-${'9'.repeat(20)}`, 404, 'unknown_key'],
])('%s is refused with %i and a reason, as JSON even where NDJSON is asked for', async (path, code, reason) => {
  for (const accept of ['*/*', 'application/x-ndjson']) {
    const { status, headers, json } = await fetchDocumented(`${atRest().relay.url}${path}`, { headers: { accept } })
    expect([status, headers.get('content-type')]).toEqual([code, 'application/json'])
    expect(json).toMatchObject({ code, details: [{ '@type': `stocktape/${reason}` }] })
  }
  const head = await fetchDocumented(`${atRest().relay.url}${path}`, { method: 'HEAD' })
  expect([head.status, head.text]).toEqual([code, ''])
})

it('the snapshots of all tokens are one cut, from which a stream continues', async () => {
  const { devnet, relay } = await openTestStack()
  transfer({ devnet }, 'AAPLc', 1)
  const all = Snapshots.parse((await fetchDocumented(`${relay.url}/v1/snapshot`)).json)
  const listener = await listenNdjson(`${relay.url}/v1/stream?symbols=*&since=${all.as_of}&snapshot=always`)
  onTestFinished(() => listener.close())
  await listener.waitFor('live')
  expect(listener.messagesOf('subscribed')).toMatchObject([{ resume: 'full' }])
  const state = ({ symbol, token, multiplier }: (typeof all.snapshots)[number]) => ({ symbol, token, multiplier })
  expect(all.snapshots.map(state)).toEqual(listener.messagesOf('snapshot').map(state))
  for (const { id, as_of } of all.snapshots) expect([id, as_of]).toEqual([all.as_of, all.as_of])
  const some = Snapshots.parse((await fetchDocumented(`${relay.url}/v1/snapshot?symbols=tsla,APPL`)).json)
  expect(some.snapshots.map(({ symbol }) => symbol)).toEqual(['TSLAc'])
  expect(some.rejected).toEqual([{ symbol: 'APPL', reason: 'unknown_symbol', suggest: ['AAPLc'] }])
})

// Random tapes and selections are in the unit tests of the history.
it.each<[string, (url: string, query: string) => Promise<TestListener>]>([
  ['symbols=AAPLc,TSLAc&min_shares=2', (url, query) => listenSse(`${url}/v1/stream?${query}`)],
  ['symbols=AAPLc&stage=sealed', (url, query) => listenWs(`${url.replace('http', 'ws')}/v1/ws?${query}`)],
])('a gap after a too long replay has a link whose pages and lines complete the live updates: %s', async (query, open) => {
  const stack = await openTestStack({ MAX_REPLAY: String(MAX_REPLAY) })
  const all = await closeAfterTest(listenNdjson(`${stack.relay.url}/v1/stream?${query}&snapshot=false`))
  const { id: start } = await all.waitFor('live')
  const sealsInRound = query.includes('TSLAc') ? 2 : 1
  /** Transfers of two tokens and sizes in one sealed block; resolves once its seals are published. */
  const round = async () => {
    const before = all.messagesOf('seal').length
    for (const symbol of ['AAPLc', 'TSLAc']) {
      transfer(stack, symbol, 3)
      transfer(stack, symbol, 3, 500_000_000n)
    }
    stack.devnet.seal()
    await all.until(() => all.messagesOf('seal').length === before + sealsInRound)
  }
  await round()
  const back = await closeAfterTest(open(stack.relay.url, `${query}&snapshot=false&since=${start}`))
  const gap = await back.waitFor('gap')
  expect(gap).toMatchObject({ reason: 'long', after: start })
  // A token may be renamed meanwhile, so the link has addresses.
  expect(gap.backfill).not.toContain('AAPLc')
  expect(await back.waitFor('live')).toMatchObject({ replayed: 0, id: gap.through })
  await round()
  const missed = await readAllPages(stack, `${gap.backfill}&limit=3`)
  expect(missed.length).toBeGreaterThan(MAX_REPLAY)
  expect(await readLines(stack, `${gap.backfill}&format=ndjson`)).toEqual(missed)
  await back.until(() => missed.length + tapeTexts(back).length >= tapeTexts(all).length)
  expect([...missed, ...tapeTexts(back)]).toEqual(tapeTexts(all))
})
