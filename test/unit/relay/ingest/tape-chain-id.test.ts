import { expect, it, onTestFinished } from 'vitest'
import { ChainIdentity } from '../../../../src/relay/chain/rpc/chain-identity.ts'
import { openTapeChainId, writerWithChainId } from '../../../../src/relay/ingest/tape-chain-id.ts'
import { Notes } from '../../../../src/relay/tape/notes.ts'
import { WrongTapeError } from '../../../../src/relay/tape/tape.ts'
import { openLocalTape } from '../../../support/local-tape.ts'
import { status } from '../tape/update-drafts.ts'

const [FIRST, SECOND] = ['http://first', 'http://second']

const openTape = () => {
  const tape = openLocalTape({
    dataDir: ':memory:',
    tapeRetentionMs: 1e9,
    tapeMaxMessages: 1_000,
    now: Date.now,
    random: Math.random,
  })
  onTestFinished(() => tape.close())
  return tape
}

/** The chain of a tape, where each URL is checked in turn, and the failures that end the process. */
async function checkUrls(tapeChain: number | null, CHAIN_ID: number | undefined, answers: readonly (readonly [string, number])[]) {
  const tape = openTape()
  const writer = writerWithChainId(tape, tape.writer, { chain: new ChainIdentity(tapeChain, ''), isBuiltIn: false })
  await writer.append({ first: 1, updates: [], notes: new Notes(), keepAfter: 0 })
  const failures: unknown[] = []
  const config = {
    chain: { chainId: CHAIN_ID, upstreamRpcUrl: [FIRST, SECOND] },
    tape: { dataDir: '/data', natsUrl: undefined, natsStream: 'STOCKTAPE' },
  }
  const onFailure = (failure: unknown) => failures.push(failure)
  const chain = openTapeChainId(tape, { config, onFailure })
  const mismatches = answers.map(([url, chainId]) => chain.checkUrl(url, chainId))
  return { used: mismatches.map((mismatch) => mismatch === null), isWrong: chain.isWrong([FIRST, SECOND]), failures }
}

/** `1:7 used` says that the first URL answers with chain 7, and is used. */
const answersOf = (text: string) =>
  text.split(', ').map((answer) => {
    const [, url, chainId, word] = /^(.):(.) (.+)$/.exec(answer) ?? []
    return { answer: [url === '1' ? FIRST : SECOND, Number(chainId)] as const, isUsed: word === 'used' }
  })

it.each<[string, number | null, number | undefined, string, 'right' | 'wrong' | 'wrong, ends']>([
  ['is that of the first URL', null, undefined, '1:1 used, 2:2 refused', 'right'],
  ['is the one that is set', null, 2, '1:1 refused, 2:2 used', 'right'],
  ['is wrong where every URL has another', null, 3, '1:1 refused, 2:2 refused', 'wrong'],
  ['is not wrong until every URL answered', null, 3, '1:1 refused', 'right'],
  ['is right again once a URL is', null, 3, '1:1 refused, 2:2 refused, 1:3 used', 'right'],
  ['is that of the tape', 2, undefined, '1:1 refused, 2:2 used', 'right'],
  ['ends the process if the tape has another than all URLs', 3, undefined, '1:1 refused, 2:1 refused', 'wrong, ends'],
  ['never ends the process once a URL had it', 3, undefined, '1:3 used, 1:1 refused, 2:1 refused', 'wrong'],
  ['is wrong and the process stays where it is set and on the tape', 3, 3, '1:1 refused, 2:1 refused', 'wrong'],
])('the chain of a relay %s', async (_, tapeChain, set, text, outcome) => {
  const answers = answersOf(text)
  const { used, isWrong, failures } = await checkUrls(
    tapeChain,
    set,
    answers.map(({ answer }) => answer),
  )
  expect(used).toEqual(answers.map(({ isUsed }) => isUsed))
  expect(isWrong).toBe(outcome !== 'right')
  expect(failures.map((failure) => failure instanceof WrongTapeError)).toEqual(outcome === 'wrong, ends' ? [true] : [])
})

it('the chain is written once, with the first batch after it is known', async () => {
  const tape = openTape()
  const chain = new ChainIdentity(null, '')
  const writer = writerWithChainId(tape, tape.writer, { chain, isBuiltIn: false })
  const batches: string[] = []
  tape.follow((entries, notes) => batches.push(`${entries.length} ${[...notes].map(([name, value]) => `${name} ${value}`)}`))
  const append = () =>
    writer.append({ first: tape.next, updates: [status({ at: 0 })], notes: new Notes(), keepAfter: Number.POSITIVE_INFINITY })
  await append()
  chain.checkUrl(FIRST, 7)
  await append()
  await append()
  expect(batches).toEqual(['1 ', '1 chain 7', '1 '])
})

it('a tape of another chain than CHAIN_ID is refused, with the folder and both chains', async () => {
  await expect(checkUrls(3, 4, [])).rejects.toThrow(
    'DATA_DIR /data holds the tape of chain 3, CHAIN_ID says 4: name another folder',
  )
})
