import { expect, test } from 'vitest'
import { parseLogs } from '../../src/relay/chain/logs/log-parser.ts'
import { LightChain, numberOfKey } from './light-chain.ts'
import { FIRST_NUMBER } from './message-stamp.ts'
import { PublicationAudit } from './publication-audit.ts'
import { FrameReader } from './stream-readers.ts'

const TOKENS = 3

/** The logs in pushed frames. */
function pushedLogs(frames: Buffer) {
  const logs: unknown[] = []
  const reader = new FrameReader({
    text: (bytes, from, to) => logs.push(JSON.parse(bytes.toString('utf8', from, to)).params.result),
  })
  reader.read(frames, 0, frames.length)
  return parseLogs(logs)
}

const parsed = (answer: string | Buffer | undefined) => JSON.parse(String(answer))

test('the light chain pushes the logs that it seals, each in a message of its own', () => {
  const chain = new LightChain(TOKENS)
  const first = pushedLogs(chain.push(FIRST_NUMBER, 20, '0x1'))
  const second = pushedLogs(chain.push(FIRST_NUMBER + 20, 7, '0x1'))
  const pending = parseLogs(parsed(chain.answer('eth_getLogs', [{ fromBlock: 'latest', toBlock: 'pending' }])))
  const header = chain.seal() as { hash: string; number: string }
  const sealed = parseLogs(parsed(chain.answer('eth_getLogs', [{ blockHash: header.hash }])))
  expect(first.unreadable + second.unreadable + sealed.unreadable).toBe(0)
  expect(pending.logs).toEqual([...first.logs, ...second.logs])
  expect(sealed.logs.map((log) => ({ ...log, blockHash: null }))).toEqual(pending.logs)
  expect(sealed.logs.every((log) => log.blockHash === header.hash)).toBe(true)
  expect(sealed.logs.map(({ key }) => numberOfKey(key))).toEqual(Array.from({ length: 27 }, (_, at) => FIRST_NUMBER + at))
  expect(sealed.logs.map(({ data }) => Number(data))).toEqual(sealed.logs.map(({ key }) => numberOfKey(key)))
})

test('the light chain answers with the logs of the requested contracts and blocks', () => {
  const chain = new LightChain(TOKENS)
  chain.push(FIRST_NUMBER, 9, null)
  const header = chain.seal() as { number: string }
  const { tokens } = JSON.parse(chain.list)
  const range = { fromBlock: header.number, toBlock: header.number }
  const { logs } = parseLogs(parsed(chain.answer('eth_getLogs', [{ ...range, address: [tokens[1].contract_address] }])))
  expect(logs.map(({ key }) => numberOfKey(key) - FIRST_NUMBER)).toEqual([1, 4, 7])
  expect(parsed(chain.answer('eth_getBlockByNumber', ['latest', false]))).toEqual(
    parsed(chain.answer('eth_getBlockByNumber', [header.number])),
  )
  expect(parsed(chain.answer('eth_getBlockByNumber', ['pending', false]))).toMatchObject({ hash: null })
  expect(parsed(chain.answer('eth_getLogs', [{ ...range, address: [] }]))).toEqual([])
  expect(chain.answer('eth_call', [])).toBeUndefined()
})

test.each([
  ['published and sealed', ['transfer', 'seal'], {}],
  ['never sealed', ['transfer'], { unsealed: 1 }],
  ['never published', ['seal'], { unpublished: 1 }],
  ['published twice', ['transfer', 'transfer', 'seal'], { repeated: 1 }],
  ['sealed twice', ['transfer', 'seal', 'seal'], { sealedTwice: 1 }],
  ['amended', ['transfer', 'amend', 'seal'], { corrections: 1 }],
])('the audit of a log that is %s', (_what, types, wrong) => {
  const audit = new PublicationAudit()
  const stamp = `"to":"0x${'0'.repeat(40)}","raw":"${FIRST_NUMBER}"`
  for (const type of types) {
    const key = `1-0x${String(FIRST_NUMBER).padStart(64, 'a')}-7`
    const text = JSON.stringify({ type, keys: [key] }).slice(0, -1) + (type === 'seal' ? '}' : `,${stamp}}`)
    const bytes = Buffer.from(text)
    audit.read(bytes, 0, bytes.length, bytes.indexOf('"to":"'))
  }
  const clean = { unpublished: 0, repeated: 0, unsealed: 0, sealedTwice: 0, corrections: 0 }
  expect(audit.report(FIRST_NUMBER, FIRST_NUMBER)).toEqual({ ...clean, ...wrong })
})
