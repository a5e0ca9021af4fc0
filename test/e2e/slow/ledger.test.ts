import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { toEventSelector } from 'viem/utils'
import { expect, it, type TestContext, vi } from 'vitest'
import type { Devnet } from '../../../src/devnet/devnet.ts'
import { type Hex, toWord, ZERO_ADDRESS } from '../../../src/lib/hex.ts'
import { ChildProgram, createTempFolder, listeningLine } from '../../support/child-program.ts'
import { needPrograms, pathOf } from '../../support/debian-programs.ts'
import { TcpProxy } from '../../support/tcp-proxy.ts'
import { openDevnet } from '../../support/test-stack.ts'
import { ALICE, BOB, CAROL } from '../../unit/devnet/devnet-client.ts'
import { DeployedRelay, TEST_TIMEOUT_MS } from './deployed-relay.ts'

needPrograms('curl', 'python')

vi.setConfig({ testTimeout: TEST_TIMEOUT_MS })

/** Less than a long absence misses, so that the ledger must read the history. */
const [MAX_REPLAY, LONG_ABSENCE_BLOCKS] = [20, 6]
const TRANSFER = toEventSelector('Transfer(address,address,uint256)')
const MEMO: Hex = `0x${'01'.repeat(32)}`

/** A devnet, a relay on it, and the ledger, which reaches the relay through a proxy. */
async function openStack(test: TestContext) {
  const devnet = await openDevnet({ pace: 'manual' }, test)
  const relay = await DeployedRelay.open(test, devnet, { MAX_REPLAY: String(MAX_REPLAY) })
  const proxy = await TcpProxy.open(Number(new URL(relay.url).port))
  test.onTestFinished(() => proxy.close())
  const file = join(await createTempFolder(test), 'ledger.sqlite')
  const startLedger = () => {
    const url = `http://127.0.0.1:${proxy.port}`
    const ledger = new ChildProgram([pathOf('python'), 'src/docs/programs/ledger.py', 'AAPLc', url, file], { env: {} })
    test.onTestFinished(() => ledger.kill())
    return ledger
  }
  return { devnet, relay, proxy, file, startLedger }
}

/** Adds movements of each kind to the pending block, and shows them. Returns the hash of the last one. */
function showMovements({ transfer, issuer, makeFlashblock, chain }: Devnet): Hex {
  const raw = BigInt(chain.pending.number)
  transfer({ symbol: 'AAPLc', from: ZERO_ADDRESS, to: ALICE, raw: 9n * raw })
  transfer({ symbol: 'AAPLc', from: ALICE, to: BOB, raw })
  transfer({ symbol: 'AAPLc', from: BOB, to: ZERO_ADDRESS, raw: 7n })
  issuer.seize({ symbol: 'AAPLc', from: ALICE, to: CAROL, raw: 5n, memo: MEMO })
  const last = transfer({ symbol: 'AAPLc', from: CAROL, to: ALICE, raw: 3n * raw })
  makeFlashblock()
  return last
}

const isPublished = (relay: DeployedRelay, hash: Hex) =>
  relay.waitForResponse('/v1/events?symbols=AAPLc&order=desc', (text) => text.includes(hash))

const waitForBlock = (ledger: ChildProgram, { number }: { readonly number: number }) =>
  ledger.waitForOutput('stdout', new RegExp(`^block ${number} .*\n`, 'm'))

/** Blocks whose pre-confirmed movements are sealed, dropped, changed, moved, late, or replaced by a reorg. */
async function makeFaultyBlocks(devnet: Devnet, relay: DeployedRelay) {
  const { faults } = devnet
  const published = async () => {
    const hash = showMovements(devnet)
    await isPublished(relay, hash)
    return hash
  }
  faults.drop(await published())
  devnet.seal()
  const changed = await published()
  const log = devnet.chain.pending.logs.find(({ transactionHash }) => transactionHash === changed)
  if (log) faults.change(changed, [{ ...log, data: toWord(1n) }])
  devnet.seal()
  faults.move(await published())
  devnet.seal()
  // No seal follows: the block has no log of the token.
  const alone = devnet.transfer({ symbol: 'AAPLc', from: BOB, to: CAROL, raw: 11n })
  devnet.makeFlashblock()
  await isPublished(relay, alone)
  faults.drop(alone)
  devnet.seal()
  faults.lostFlashes = 1
  showMovements(devnet)
  devnet.seal()
  const replaced = await published()
  await isPublished(relay, devnet.seal().hash)
  devnet.reorg(2, [replaced])
}

function sealMovements(devnet: Devnet) {
  showMovements(devnet)
  return devnet.seal()
}

/** Sums of the sealed movements of the token after a block, by account. */
function changesOnChain({ chain, list }: Devnet, begin: number): Record<string, bigint> {
  const changes: Record<string, bigint> = {}
  for (let number = begin + 1; number <= chain.head.number; number += 1) {
    for (const { address, topics, data } of chain.block(number)?.logs ?? []) {
      if (address !== list.addressOf('AAPLc') || topics[0] !== TRANSFER) continue
      const [, from = '', to = ''] = topics.map((topic) => `0x${topic.slice(26)}`)
      changes[from] = (changes[from] ?? 0n) - BigInt(data)
      changes[to] = (changes[to] ?? 0n) + BigInt(data)
    }
  }
  return changes
}

function balancesIn(file: string): Record<string, bigint> {
  const rows = new DatabaseSync(file).prepare('SELECT account, raw FROM balances').all()
  return Object.fromEntries(rows.map(({ account, raw }) => [String(account), BigInt(String(raw))]))
}

it('the ledger has the balances of the chain after faults of the node, kills and cut connections, and each block is proven', async (test) => {
  const { devnet, relay, proxy, file, startLedger } = await openStack(test)
  let ledger = startLedger()
  const begin = Number((await ledger.waitForOutput('stdout', /^begins after block (\d+)\n/))[1])
  // The ledger does not count these blocks.
  while (devnet.chain.pending.number <= begin) sealMovements(devnet)
  await waitForBlock(ledger, sealMovements(devnet))
  await makeFaultyBlocks(devnet, relay)
  await waitForBlock(ledger, sealMovements(devnet))

  // The relay is killed between a pre-confirmation and its end.
  const lost = showMovements(devnet)
  await isPublished(relay, lost)
  relay.signal('SIGKILL')
  await relay.waitForExit()
  devnet.faults.drop(lost)
  devnet.seal()
  sealMovements(devnet)
  await relay.start()
  await waitForBlock(ledger, sealMovements(devnet))

  proxy.cut()
  await makeFaultyBlocks(devnet, relay)
  for (let block = 0; block < LONG_ABSENCE_BLOCKS; block += 1) sealMovements(devnet)
  await isPublished(relay, sealMovements(devnet).hash)
  proxy.mend()
  await waitForBlock(ledger, devnet.chain.head)
  expect(await (await fetch(`${relay.url}/metrics`)).text()).toMatch(/gaps_total{reason="long"} [1-9]/)

  // The ledger is killed too, and misses a restart of the relay.
  await ledger.kill()
  const printed = ledger.stdout
  await relay.restart('SIGTERM')
  sealMovements(devnet)
  ledger = startLedger()
  await waitForBlock(ledger, devnet.chain.head)
  relay.signal('SIGKILL')
  await relay.waitForExit()
  sealMovements(devnet)
  await relay.start()
  const [line] = await waitForBlock(ledger, sealMovements(devnet))

  const changes = changesOnChain(devnet, begin)
  expect(balancesIn(file)).toEqual(changes)
  expect(`${printed}${ledger.stdout}`).not.toContain('not proven')
  expect(line).toMatch(/proven: 5 movements; minted - burned = (\d+)\n$/)
  expect(line).toContain(`= ${-(changes[ZERO_ADDRESS] ?? 0n)}\n`)
})

const keyAt = (block: number) => `${block}-0x${'ab'.repeat(32)}-0`
const digestOf = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 32)
const movementAt = (block: number, raw: string) => ({ type: 'transfer', key: keyAt(block), from: ALICE, to: BOB, raw })
const sealAt = (block: number, types: readonly string[] = ['transfer'], digest = digestOf(keyAt(block))) => {
  return { type: 'seal', block: { number: block }, keys: [keyAt(block)], types, count: 1, digest }
}

type ScriptedMessage = { readonly type: string; readonly id?: string; readonly [field: string]: unknown }

/** A stream of a scripted relay. A message without an id gets the next number, and the `prev` of its type. */
function streamOf(messages: readonly ScriptedMessage[]): string {
  const lastIds = new Map<string, string>()
  const lines = messages.map((message, index) => {
    if (message.id) return { prev: null, ...message }
    const [id, prev] = [`a.${11 + index}`, lastIds.get(message.type) ?? null]
    lastIds.set(message.type, id)
    return { id, prev, ...message }
  })
  const hello = { type: 'hello', id: 'a.10', head: { pending: 99, sealed: 98, safe: null, finalized: null } }
  return [hello, ...lines].map((message) => `${JSON.stringify(message)}\n`).join('')
}

it('the ledger drops repetitions, doubts what no seal proves until it is repaired, and ends only at a lasting refusal', async (test) => {
  const answers: ((response: ServerResponse) => void)[] = [
    (response) => response.writeHead(503, { 'retry-after': 'Thu, 01 Jan 1970 00:00:00 GMT' }).end(),
    (response) =>
      response.write(
        streamOf([
          movementAt(101, '5'),
          { type: 'amend', key: keyAt(101), update: movementAt(101, '7') },
          { ...movementAt(101, '5'), id: 'a.11' },
          sealAt(101, ['transfer'], digestOf('other')),
          sealAt(101),
          movementAt(102, '1'),
          { type: 'finality', stage: 'finalized', block: { number: 102 } },
          sealAt(103, ['approval']),
          { type: 'retract', key: keyAt(102) },
          sealAt(104, ['approval']),
          sealAt(105),
          { ...sealAt(106, ['approval']), prev: 'a.12' },
          { type: 'gap', id: 'a.90', prev: undefined, reason: 'long', backfill: '/v1/events?symbols=AAPLc&after=a.22&before=a.91' },
        ]),
      ),
    (response) => response.writeHead(410).end(),
    (response) => response.end(`${JSON.stringify({ type: 'error', code: 401, message: 'wrong key' })}\n`),
  ]
  const requests: string[] = []
  const server = createServer(({ url, headers }, response) => {
    requests.push(`${headers.authorization} ${url?.replace(/\?.*(since|after)=/, '?$1=')}`)
    answers.shift()?.(response)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  test.onTestFinished(() => void server.close())
  const file = join(await createTempFolder(test), 'ledger.sqlite')
  const run = async (token: string, relay = `http://127.0.0.1:${(server.address() as AddressInfo).port}`) => {
    const args = ['src/docs/programs/ledger.py', token, relay, file]
    const ledger = new ChildProgram([pathOf('python'), ...args], { env: { STOCKTAPE_KEY: 'one' } })
    return [await ledger.waitForExit(), ledger.stdout.split('\n'), ledger.stderr.split('\n').at(-2)]
  }
  const supply = 'minted - burned = 0'
  const printed = [
    'begins after block 100',
    `block 101 not proven; block 101: the seal is damaged; ${supply}`,
    `block 101 proven: 1 movements; ${supply}`,
    `block 103 not proven; block 102: finalized, but no seal lists a movement; ${supply}`,
    `block 104 proven: 0 movements; ${supply}`,
    `block 105 not proven; block 105: lacks 1 movements, has 0 too many; ${supply}`,
    `block 106 not proven; block 105: lacks 1 movements, has 0 too many; before a.22: a seal is missing; ${supply}`,
    '',
  ]
  expect(await run('AAPLc')).toEqual([1, printed, 'wrong key'])
  const paths = ['stream?since=now', 'stream?since=now', 'events?after=a.22&before=a.91&limit=1000', 'stream?since=a.22']
  expect(requests).toEqual(paths.map((path) => `Bearer one /v1/${path}`))
  expect(balancesIn(file)).toEqual({ [ALICE]: -7n, [BOB]: 7n })
  expect(await run('TSLAc')).toEqual([1, [''], 'This file is the ledger of AAPLc.'])
  expect(await run('AAPLc,TSLAc')).toEqual([1, [''], 'A ledger has one token.'])
})

/** The output of each command of docs/bots.md, and more flags for it here. */
const commands: Readonly<Record<string, readonly [printed: RegExp, flags?: string]>> = {
  'npm start': [listeningLine],
  "curl -N 'http://127.0.0.1:8080/v1/stream/AAPLc?format=ndjson&heartbeat=5'": [/"type":"heartbeat"/],
  'python3 src/docs/programs/ledger.py AAPLc http://127.0.0.1:8080 AAPLc.sqlite': [/^begins after block \d+\n/],
  'npm run conform -- python3 src/docs/programs/follow.py': [/✓ resume .*\n\n1 rules kept/, '--only resume'],
  'npm start -- --data-dir :memory: --faults drop=20%,late=10%,reorg=5%': [listeningLine],
}

it('each command of the page for authors of bots works', async (test) => {
  const rows = Object.entries(commands)
  const blocks = readFileSync('docs/bots.md', 'utf8').matchAll(/^```sh\n(.*?)^```$/gms)
  expect([...blocks].flatMap(([, block = '']) => block.trim().split('\n'))).toEqual(rows.map(([command]) => command))
  const { relay, file } = await openStack(test)
  const run = async ([command, [printed, flags]]: (typeof rows)[number]) => {
    const line = command.replace('http://127.0.0.1:8080', relay.url).replace('AAPLc.sqlite', file)
    const env = { PATH: process.env.PATH, HOME: process.env.HOME, PORT: '0', DATA_DIR: await createTempFolder(test) }
    const program = new ChildProgram(['bash', '-c', flags ? line.replace(' -- ', ` -- ${flags} `) : line], { env })
    test.onTestFinished(() => program.kill())
    await Promise.any([program.waitForOutput('stdout', printed), program.waitForOutput('stderr', printed)])
  }
  await Promise.all(rows.map(run))
})
