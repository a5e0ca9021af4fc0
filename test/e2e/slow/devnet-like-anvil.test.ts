import { beforeAll, describe, expect, it } from 'vitest'
import { startDevnet } from '../../../src/devnet/devnet.ts'
import { type Hex, quantity, toWord } from '../../../src/lib/hex.ts'
import { ACCOUNTS, startAnvil } from '../../support/anvil-node.ts'
import { openSocket, ZERO } from '../../unit/devnet/devnet-client.ts'
import { openedOnce } from '../gateway/node-and-gateway.ts'

/** The built-in chain's node and a real one have the same story behind them, and answer the same questions alike. */

const [ALICE, BOB] = ACCOUNTS
const NOBODY: Hex = `0x${'cc'.repeat(20)}`
const UNKNOWN_HASH: Hex = `0x${'12'.repeat(32)}`
const MEMO: Hex = `0x${'6d'.repeat(32)}`
const TRANSFER: Hex = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'
const MULTIPLIER = 4n * 10n ** 18n
const selectors = {
  uiMultiplier: '0xa60bf13d',
  newUIMultiplier: '0xdc767007',
  effectiveAt: '0x97a4064f',
  pausedFeatures: '0xde9997e3',
  unknown: '0x12345678',
} as const

type Json = Readonly<Record<string, unknown>>
type Answer = { readonly result?: unknown; readonly error?: { readonly code: number } }
/** A node, its token and who acts for the issuer, and the block of each chapter of the story. */
type Node = {
  readonly url: string
  readonly wsUrl: string
  readonly token: Hex
  readonly issuers: readonly string[]
  readonly begin: number
  /** Transfers in one more block. */
  readonly goOn: () => unknown
}

/** The chapters, each a block: a mint, a transfer, a split, a pause, a seizure, and a block without transactions. */
const [MINT, MOVE, SPLIT, PAUSE, SEIZE, EMPTY] = [0, 1, 2, 3, 4, 5]

async function openAnvil(): Promise<Node & { stop: () => Promise<void> }> {
  const anvil = await startAnvil()
  const head = Number(await anvil.rpc('eth_blockNumber'))
  await anvil.send({ functionName: 'mint', args: [ALICE, 1_000n] })
  await anvil.send({ functionName: 'transfer', args: [BOB, 7n] })
  await anvil.send({ functionName: 'announce', args: ['split 1', MULTIPLIER, 0n] })
  await anvil.send({ functionName: 'pause', args: [[1, 2]] })
  await anvil.send({ functionName: 'seizeWithMemo', args: [BOB, ALICE, 3n, MEMO] })
  await anvil.rpc('anvil_mine', 1)
  return {
    url: anvil.rpcUrl,
    wsUrl: anvil.wsUrl,
    token: anvil.token,
    issuers: [ALICE],
    begin: head + 1,
    goOn: () => anvil.send({ functionName: 'transfer', args: [BOB, 1n] }),
    stop: anvil.kill,
  }
}

async function openBuiltIn(): Promise<Node & { stop: () => Promise<void> }> {
  const devnet = await startDevnet({ pace: 'manual', receipts: true, calls: true })
  const symbol = 'AAPLc'
  devnet.issuer.split({ symbol, to: '2' })
  const begin = devnet.chain.pending.number + 1
  const chapters = [
    () => undefined,
    () => devnet.transfer({ symbol, from: ZERO, to: ALICE, raw: 1_000n }),
    () => devnet.transfer({ symbol, from: ALICE, to: BOB, raw: 7n }),
    () => devnet.issuer.announce({ symbol, id: 'split 1', description: 'A split', split: { to: '4' } }),
    () => devnet.issuer.pause({ symbol, features: [1, 2] }),
    () => devnet.issuer.seize({ symbol, from: BOB, to: ALICE, raw: 3n, memo: MEMO }),
    () => undefined,
  ]
  const senders = chapters.flatMap((tell) => {
    tell()
    devnet.makeFlashblock()
    return devnet.seal().transactions.map(({ from }) => from)
  })
  const goOn = () => {
    devnet.transfer({ symbol, from: ALICE, to: BOB, raw: 1n })
    devnet.makeFlashblock()
    devnet.seal()
  }
  const { rpcUrl: url, wsUrl, stop } = devnet
  return { url, wsUrl, token: devnet.list.addressOf(symbol), issuers: senders.filter((from) => from !== ALICE), begin, goOn, stop }
}

const nodes = openedOnce(async ({ onTestFinished }) => {
  const opened = await Promise.all([openBuiltIn(), openAnvil()])
  for (const { stop } of opened) onTestFinished(stop)
  return opened
})

/** Questions to one node. Answers name accounts, blocks and transactions by the story, so that they can be compared. */
class Interview {
  readonly node: Node
  readonly #names = new Map<string, string>()
  readonly #timeWords: string[] = []

  constructor(node: Node) {
    this.node = node
    const accounts = { token: [node.token], alice: [ALICE, ...node.issuers], bob: [BOB], nobody: [NOBODY] }
    for (const [name, addresses] of Object.entries(accounts))
      for (const address of addresses) this.#names.set(address, name).set(toWord(address as Hex), name)
  }

  async ask(method: string, ...params: unknown[]): Promise<Answer> {
    const [answer] = await this.askAll([method, ...params])
    return answer ?? {}
  }

  /** Asks in one request. */
  async askAll(...questions: readonly (readonly [method: string, ...params: unknown[]])[]): Promise<readonly Answer[]> {
    const body = questions.map(([method, ...params], id) => ({ jsonrpc: '2.0', id, method, params }))
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(this.node.url, { method: 'POST', headers, body: JSON.stringify(body) })
    return (await response.json()) as readonly Answer[]
  }

  at(chapter: number): Hex {
    return quantity(this.node.begin + chapter)
  }

  async block(chapter: number, full = false): Promise<Json> {
    return (await this.ask('eth_getBlockByNumber', this.at(chapter), full)).result as Json
  }

  async logs(filter: Json = { fromBlock: this.at(MINT), toBlock: this.at(EMPTY) }): Promise<unknown> {
    return this.named((await this.ask('eth_getLogs', filter)).result ?? 'refused')
  }

  async call(selector: keyof typeof selectors, chapter: number, to: Hex = this.node.token): Promise<unknown> {
    const { result, error } = await this.ask('eth_call', { to, data: selectors[selector] }, this.at(chapter))
    return result ?? error?.code
  }

  /** Returns the messages of a subscription in the next chapter, and the answer when it is ended. */
  async subscribed(...params: unknown[]): Promise<readonly unknown[]> {
    const link = await openSocket(this.node)
    const { result } = await link.subscribe(...params)
    await this.node.goOn()
    await link.waitUntil(() => link.notifications.length > 0)
    const { result: isEnded } = await link.call('eth_unsubscribe', result)
    return [...link.notifications, isEnded]
  }

  async code(method: string, ...params: unknown[]): Promise<number | undefined> {
    return (await this.ask(method, ...params)).error?.code
  }

  /** Learns the hashes of blocks and transactions. */
  async learn(): Promise<this> {
    for (let chapter = MINT - 1; chapter <= EMPTY; chapter += 1) {
      const { hash, timestamp, transactions } = await this.block(chapter)
      this.#timeWords.push(toWord(BigInt(String(timestamp))).slice(2))
      this.#names.set(String(hash), `block ${chapter}`)
      for (const tx of transactions as readonly string[]) this.#names.set(tx, `transaction ${chapter}`)
    }
    return this
  }

  /** The same value in the words of the story. Times are left out, and fields are in one order. */
  named(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((part) => this.named(part))
    if (typeof value === 'string')
      return this.#names.get(value.toLowerCase()) ?? this.#timeWords.reduce((text, word) => text.replace(word, ' time '), value)
    if (typeof value !== 'object' || value === null) return value
    const fields = Object.entries(value).filter(([name]) => !/[tT]imestamp/.test(name))
    const told = fields.map(([name, part]) => [name, /^(blockN|n)umber$/.test(name) ? this.#chapterOf(part) : this.named(part)])
    return Object.fromEntries(told.sort(([one], [other]) => (String(one) < String(other) ? -1 : 1)))
  }

  #chapterOf(number: unknown): unknown {
    return typeof number === 'string' ? Number(number) - this.node.begin : number
  }
}

/** Fields that anvil has and nodes of the chain do not. */
const anvilFields = ['totalDifficulty', 'blockTimestamp', 'blobGasPrice']
/** Anvil pushes them in heads too, other nodes only the header. */
const wholeBlockFields = ['size', 'transactions', 'uncles', 'withdrawals']

/** What a value looks like: for fields whose content each chain makes for itself. */
function formOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(formOf)
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, formOf(part)]))
  if (typeof value !== 'string') return value
  if (/^0x(0|[1-9a-f][0-9a-f]{0,30})$/.test(value)) return 'a quantity'
  return /^0x([0-9a-f]{2})*$/.test(value) ? `${value.length / 2 - 1} bytes` : value
}

const fieldsOf = (json: unknown): readonly string[] => Object.keys(json as Json).sort()
const pick = (json: unknown, ...names: readonly string[]): Json =>
  Object.fromEntries(names.map((name) => [name, (json as Json)[name]]))
const without = (json: unknown, ...names: readonly string[]): Json =>
  Object.fromEntries(Object.entries(json as Json).filter(([name]) => !names.includes(name)))

const receipts = async (node: Interview, chapter: number) =>
  (await node.ask('eth_getBlockReceipts', node.at(chapter))).result as Json[]
const transactions = async (node: Interview, chapter: number) => (await node.block(chapter, true)).transactions as Json[]

const rows: Readonly<Record<string, readonly (readonly [what: string, tell: (node: Interview) => unknown])[]>> = {
  'a block': [
    ['has the same fields', async (node) => fieldsOf(without(await node.block(MOVE), ...anvilFields))],
    ['has them in the same form', async (node) => formOf(without(node.named(await node.block(MOVE)), 'extraData', ...anvilFields))],
    ['has the same constants', async (node) => pick(await node.block(MOVE), 'sha3Uncles', 'difficulty', 'nonce', 'uncles')],
    ['is linked to its parent', async (node) => pick(node.named(await node.block(MOVE)), 'number', 'hash', 'parentHash')],
    ['counts its gas', async (node) => (await node.block(EMPTY)).gasUsed],
    ['has a filter that is empty without logs', async (node) => BigInt(String((await node.block(EMPTY)).logsBloom))],
    ['lists its transactions', async (node) => node.named((await node.block(SPLIT)).transactions)],
    ['is null above the head', (node) => node.ask('eth_getBlockByNumber', node.at(EMPTY + 5), false).then(({ result }) => result)],
    [
      'of the tag earliest is block 0',
      async (node) => pick((await node.ask('eth_getBlockByNumber', 'earliest', false)).result, 'number'),
    ],
    [
      'that is pending follows the head, without a state root',
      async (node) => {
        const { result } = await node.ask('eth_getBlockByNumber', 'pending', false)
        return pick(node.named(result), 'number', 'parentHash', 'stateRoot', 'transactions')
      },
    ],
    ['of an unknown tag is refused', (node) => node.code('eth_getBlockByNumber', 'nonsense', false)],
  ],
  'a transaction': [
    [
      'has the same fields',
      async (node) => (await transactions(node, MOVE)).map((move) => fieldsOf(without(move, ...anvilFields))),
    ],
    [
      'has the same place, parties and nonce',
      async (node) => {
        const [move] = await transactions(node, MOVE)
        const nonce = await node.ask('eth_getTransactionCount', ALICE, node.at(MINT))
        const place = pick(move, 'hash', 'blockHash', 'blockNumber', 'transactionIndex', 'from', 'to', 'value', 'type')
        return [node.named(place), move?.nonce === nonce.result]
      },
    ],
    ['is sent with the call data of the token', async (node) => (await transactions(node, MOVE)).map(({ input }) => input)],
  ],
  'a receipt': [
    [
      'has the same fields',
      async (node) => (await receipts(node, MOVE)).map((receipt) => fieldsOf(without(receipt, ...anvilFields))),
    ],
    [
      'tells the outcome and the logs',
      async (node) => {
        const told = (await receipts(node, SPLIT)).map((receipt) =>
          pick(receipt, 'status', 'type', 'from', 'to', 'contractAddress', 'logs'),
        )
        return node.named(told)
      },
    ],
    [
      'sums the gas',
      async (node) => (await receipts(node, MOVE)).map(({ gasUsed, cumulativeGasUsed }) => gasUsed === cumulativeGasUsed),
    ],
    [
      'has the filter of its block',
      async (node) => (await receipts(node, MOVE))[0]?.logsBloom === (await node.block(MOVE)).logsBloom,
    ],
    ['does not exist in a block without transactions', (node) => receipts(node, EMPTY)],
    ['is null above the head', (node) => receipts(node, EMPTY + 5)],
    [
      'is found by the hash of its block',
      async (node) => {
        const { hash } = await node.block(MOVE)
        const { result } = await node.ask('eth_getBlockReceipts', hash)
        return node.named((result as Json[]).map((receipt) => pick(receipt, 'transactionHash', 'blockHash', 'transactionIndex')))
      },
    ],
  ],
  'a filter': [
    ['finds the logs of a range, in order', (node) => node.logs()],
    ['finds those of a block by its hash', async (node) => node.logs({ blockHash: (await node.block(SEIZE)).hash })],
    ['may name one address', (node) => node.logs({ fromBlock: node.at(MOVE), toBlock: node.at(MOVE), address: node.node.token })],
    [
      'finds nothing of another address',
      (node) => node.logs({ fromBlock: node.at(MINT), toBlock: node.at(EMPTY), address: NOBODY }),
    ],
    [
      'with an empty list of addresses has all',
      (node) => node.logs({ fromBlock: node.at(MOVE), toBlock: node.at(SPLIT), address: [] }),
    ],
    ['may name topics', (node) => node.logs({ fromBlock: node.at(MINT), toBlock: node.at(EMPTY), topics: [TRANSFER] })],
    [
      'may leave a topic open',
      (node) => node.logs({ fromBlock: node.at(MINT), toBlock: node.at(EMPTY), topics: [null, toWord(BOB)] }),
    ],
    [
      'may name alternatives',
      (node) =>
        node.logs({ fromBlock: node.at(MINT), toBlock: node.at(EMPTY), topics: [[TRANSFER], [], [toWord(ALICE), toWord(BOB)]] }),
    ],
    [
      'may leave more topics open than a log has',
      (node) => node.logs({ fromBlock: node.at(SPLIT), toBlock: node.at(SPLIT), topics: [null, null, null, null] }),
    ],
    ['refuses the hash of no block', async (node) => (await node.code('eth_getLogs', { blockHash: UNKNOWN_HASH })) !== undefined],
    ['refuses what is no number', (node) => node.code('eth_getLogs', { fromBlock: '0xzz' })],
  ],
  'the state': [
    [
      'counts the transactions of a sender, after each block',
      async (node) => {
        const counts = await Promise.all([MINT, MOVE].map((at) => node.ask('eth_getTransactionCount', ALICE, node.at(at))))
        const [before, after] = counts.map(({ result }) => Number(result))
        return Number(after) - Number(before)
      },
    ],
    ['has no ether of an unused account', async (node) => (await node.ask('eth_getBalance', NOBODY, 'latest')).result],
    ['has the ether of a sender', async (node) => formOf((await node.ask('eth_getBalance', ALICE, node.at(MOVE))).result)],
    ['has no code of an account', async (node) => (await node.ask('eth_getCode', BOB, 'latest')).result],
    ['has code of the token', async (node) => String((await node.ask('eth_getCode', node.node.token, 'latest')).result).length > 2],
    ['has words in storage', async (node) => (await node.ask('eth_getStorageAt', node.node.token, '0xffff', 'latest')).result],
    [
      'is found by the hash of its block',
      async (node) => {
        const { hash } = await node.block(MOVE)
        const ways = [node.at(MOVE), { blockHash: hash }, { blockNumber: node.at(MOVE) }]
        const counts = await Promise.all(ways.map((at) => node.ask('eth_getTransactionCount', ALICE, at)))
        return new Set(counts.map(({ result }) => result)).size
      },
    ],
    ['after the head is refused', async (node) => (await node.code('eth_getBalance', ALICE, node.at(EMPTY + 9))) !== undefined],
    ['of an unknown hash is refused', (node) => node.code('eth_getBalance', ALICE, { blockHash: UNKNOWN_HASH })],
    ['of what is no address is refused', (node) => node.code('eth_getBalance', 'xyz', 'latest')],
  ],
  'a call of the token': [
    [
      'reads the multiplier before and after a split',
      (node) => Promise.all([MOVE, SPLIT].map((at) => node.call('uiMultiplier', at))),
    ],
    [
      'reads the next multiplier without a schedule',
      (node) => Promise.all([MOVE, SPLIT].map((at) => node.call('newUIMultiplier', at))),
    ],
    ['reads no time without a schedule', (node) => node.call('effectiveAt', EMPTY)],
    ['reads the paused features', (node) => Promise.all([SPLIT, PAUSE].map((at) => node.call('pausedFeatures', at)))],
    ['reverts for an unknown function', (node) => node.call('unknown', EMPTY)],
    ['is empty for an account', (node) => node.call('uiMultiplier', EMPTY, BOB)],
  ],
  'a subscription': [
    [
      'to heads sends the header of a new block',
      async (node) => {
        const [head, isEnded] = await node.subscribed('newHeads')
        return [
          formOf(without(node.named(head), 'number', 'parentHash', 'extraData', ...wholeBlockFields, ...anvilFields)),
          isEnded,
        ]
      },
    ],
    [
      'to logs sends those that its filter names',
      async (node) => {
        const [log, isEnded] = await node.subscribed('logs', { address: node.node.token, topics: [TRANSFER] })
        return [pick(node.named(log), 'address', 'topics', 'data', 'logIndex', 'transactionIndex', 'removed'), isEnded]
      },
    ],
    ['to something unknown is refused', async (node) => (await (await openSocket(node.node)).subscribe('nonsense')).error?.code],
  ],
  'a request': [
    ['of an unknown method is refused', (node) => node.code('eth_nothing')],
    ['may contain several questions', async (node) => (await node.askAll(['eth_chainId'], ['eth_nothing'])).map(fieldsOf)],
  ],
}

describe('the built-in chain answers as anvil does:', () => {
  let interviews: readonly Interview[] = []
  beforeAll(async () => {
    interviews = await Promise.all(nodes().map((node) => new Interview(node).learn()))
  })
  for (const [subject, questions] of Object.entries(rows))
    it.each(questions)(`${subject} %s`, async (_, tell) => {
      const [builtIn, anvil] = await Promise.all(interviews.map(tell))
      expect(builtIn).toEqual(anvil)
    })
})
