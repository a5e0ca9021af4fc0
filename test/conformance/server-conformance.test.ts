import { describe, expect, it, onTestFinished } from 'vitest'
import type { Devnet } from '../../src/devnet/devnet.ts'
import { runServerConformance } from '../../src/tools/conform/judge-server.ts'
import type { ServerControl } from '../../src/tools/conform/judged-server.ts'
import type { RuleVerdict } from '../../src/tools/conform/rule-verdict.ts'
import { serverRules } from '../../src/tools/conform/server-rules.ts'
import { createTempFolder, freePort, spawnRelay } from '../support/child-program.ts'
import { hasPrograms } from '../support/debian-programs.ts'
import { openRelay, type TestRelay } from '../support/in-process-relay.ts'
import { openCluster } from '../support/relay-cluster.ts'
import { openDevnet } from '../support/test-stack.ts'
import { type Mistake, openLyingProxy, type StreamMessage } from './lying-proxy.ts'

/** The rules of the contract for servers, on every form in which the relay runs, and on servers with one mistake. */

const TIMEOUT_MS = 180_000
const settings = { FINALITY_POLL: '100ms' }
const test = { onTestFinished }

const controlOf = (devnet: Devnet, restart?: () => Promise<void>): ServerControl => ({
  transfer: (symbol, times) => {
    for (let time = 0; time < times; time += 1) devnet.transfer({ symbol, raw: BigInt(time + 1) })
    devnet.makeFlashblock()
  },
  seal: () => void devnet.seal(),
  ...(restart && { restart }),
})

const problemsOf = (verdicts: readonly RuleVerdict[]): readonly string[] =>
  verdicts.filter(({ outcome }) => outcome === 'broken').map(({ rule, detail }) => `${rule}: ${detail}`)
const skippedOf = (verdicts: readonly RuleVerdict[]): readonly string[] =>
  verdicts.filter(({ outcome }) => outcome === 'not applicable').map(({ rule }) => rule)

/** Waits until the relay receives pre-confirmations. */
const untilPushed = (devnet: Devnet) => devnet.until(() => devnet.subscriptions().pendingLogs > 0)

const upstreamOf = ({ rpcUrl, wsUrl, url }: Devnet) => ({ UPSTREAM_RPC_URL: rpcUrl, UPSTREAM_WS_URL: wsUrl, STOCKS_API_URL: url })

type Form = { readonly url: string; readonly restart?: () => Promise<void> }

/** A relay in this process, on a tape in a folder. */
async function openOnFile(devnet: Devnet): Promise<Form> {
  const on = { ...settings, DATA_DIR: await createTempFolder(test), PORT: String(await freePort()) }
  let relay: TestRelay = await openRelay(devnet, on)
  onTestFinished(() => relay.stop())
  const restart = async () => {
    await relay.stop()
    relay = await openRelay(devnet, on)
  }
  return { url: relay.url, restart }
}

/** Processes that serve one port, as the program of the package or as the source. */
async function openProcesses(devnet: Devnet, more: Record<string, string>): Promise<Form> {
  const on = { ...settings, ...more, ...upstreamOf(devnet), DATA_DIR: await createTempFolder(test), PORT: String(await freePort()) }
  let relay = spawnRelay(test, on)
  const url = await relay.listeningUrl()
  const restart = async () => {
    relay.signal('SIGTERM')
    await relay.waitForExit()
    relay = spawnRelay(test, on)
    await relay.listeningUrl()
  }
  return { url: url.replace('localhost', '127.0.0.1'), restart }
}

const forms: Readonly<Record<string, (devnet: Devnet) => Promise<Form>>> = {
  'a tape in memory': async (devnet) => {
    const relay = await openRelay(devnet, settings)
    onTestFinished(() => relay.stop())
    return { url: relay.url }
  },
  'a tape in a file': openOnFile,
  'two workers': (devnet) => openProcesses(devnet, { WORKERS: '2' }),
  'a process': (devnet) => openProcesses(devnet, {}),
  'an edge over NATS': async (devnet) => {
    const { edges } = await openCluster(test, devnet, { ingesters: 1, settings })
    const [edge] = edges
    if (!edge) throw new Error('unreachable')
    const restart = async () => {
      await edge.stop()
      await edge.start()
    }
    return { url: edge.url, restart }
  },
}

describe('every rule of the contract for servers', () => {
  it.each(Object.keys(forms).filter((name) => !name.includes('NATS') || hasPrograms('nats')))(
    'is kept by %s',
    async (name) => {
      const devnet = await openDevnet({ pace: 'manual' }, test)
      const { url, restart } = await (forms[name] as (typeof forms)[string])(devnet)
      await untilPushed(devnet)
      const verdicts = await runServerConformance({ url, control: controlOf(devnet, restart) })
      expect(problemsOf(verdicts)).toEqual([])
      expect(skippedOf(verdicts)).toEqual(restart ? [] : ['restart/ws', 'restart/sse', 'restart/ndjson'])
    },
    TIMEOUT_MS,
  )
})

const json = (message: object): string => JSON.stringify(message)
const isOnTape = (message: StreamMessage): boolean => 'prev' in message
/** Changes messages of a type. */
const changing = (type: string, change: (message: StreamMessage) => object): Mistake => ({
  alter: () => (text, message) => [message.type === type ? json(change(message)) : text],
})

/** Mistakes of a server, and the rule that finds each. */
const mistakes: readonly (readonly [what: string, rule: string, mistake: Mistake])[] = [
  ['leaves prev out of a chain', 'chain', changing('transfer', (message) => ({ ...message, prev: null }))],
  [
    'loses the first message after the replay',
    'join',
    {
      alter: () => {
        let isLive = false
        let isLost = false
        return (text, message) => {
          isLive ||= message.type === 'live' && Number(message.replayed) > 0
          if (!isLive || isLost || !isOnTape(message)) return [text]
          isLost = true
          return []
        }
      },
    },
  ],
  [
    'seals a key before its message',
    'seals',
    changing('seal', (message) => {
      const [first, ...keys] = message.keys as readonly string[]
      return { ...message, keys: [...keys, `${first}1`] }
    }),
  ],
  [
    'repeats the message after which a client resumes',
    'resume',
    {
      alter: () => {
        let isRepeated = false
        return (text, message) => {
          if (isRepeated || !isOnTape(message)) return [text]
          isRepeated = true
          return [text, text]
        }
      },
    },
  ],
  ['closes with another code', 'bad-messages', { closeCode: (code) => (code === 4_000 ? 4_001 : code) }],
  [
    'counts too few messages in a heartbeat',
    'heartbeat',
    changing('heartbeat', (message) => ({ ...message, sent: Number(message.sent) - 1 })),
  ],
  [
    'counts a message too many in live',
    'resume',
    changing('live', (message) => ({ ...message, replayed: Number(message.replayed) + 1 })),
  ],
  ['gives a gap another reason', 'gap-epoch', changing('gap', (message) => ({ ...message, reason: 'expired' }))],
  ['leaves out the id lines', 'id-lines', { alterEvent: (event) => event.replace(/^id: .*\n/m, '') }],
  [
    'writes a message anew on one transport',
    'same-bytes',
    { alterEvent: (event) => event.replace(/"late":false/, '"late": false') },
  ],
  ['refuses with another word', 'refusals', { alterBody: (text) => text.replace('"bad_parameter"', '"wrong_parameter"') }],
  ['ignores Last-Event-ID', 'last-event-id', { requestHeaders: ({ 'last-event-id': _, ...headers }) => headers }],
  [
    'sends pre-confirmed facts in the sealed view',
    'sealed-view',
    changing('transfer', (message) => (message.stage === 'sealed' ? { ...message, stage: 'preconfirmed' } : message)),
  ],
]

describe('a server that', () => {
  it.each(mistakes)(
    '%s breaks the rule %s',
    async (_, name, mistake) => {
      const devnet = await openDevnet({ pace: 'manual' }, test)
      const relay = await openRelay(devnet, settings)
      onTestFinished(() => relay.stop())
      await untilPushed(devnet)
      const url = await openLyingProxy(test, relay.url, mistake)
      const rules = serverRules.filter((rule) => rule.name === name || rule.name === 'long-message')
      const verdicts = await runServerConformance({ url, control: controlOf(devnet), rules })
      const broken = new Set(verdicts.filter(({ outcome }) => outcome === 'broken').map(({ rule }) => rule.split('/')[0]))
      expect([...broken]).toEqual([name])
    },
    TIMEOUT_MS,
  )
})
