import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it, onTestFinished } from 'vitest'
import { messageTypes } from '../../../src/docs/json-schemas.ts'
import { typescriptTypes } from '../../../src/docs/typescript-types.ts'
import { examples } from '../../../src/protocol/contract-examples.ts'

const tsc = fileURLToPath(new URL('../../../node_modules/typescript/bin/tsc', import.meta.url))

/** What a client writes, and lines that must not compile. */
const client = `
import type { ErrorRecord, Message, Request, TokenRecord } from './types.ts'

export function describe(message: Message): string {
  switch (message.type) {
    case 'transfer':
      return message.symbol + (message.amount ?? message.raw)
    case 'multiplier':
      if (message.source === 'log') return message.key
      // @ts-expect-error Only the change of a log has a key.
      return message.key
    case 'amend':
      if (message.update.type === 'mint') return message.update.raw
      if (message.update.type === 'pause' && message.update.source === 'log') return message.update.key
      // @ts-expect-error The new message has no position of its own.
      return message.update.id
    case 'gap':
      return message.backfill ?? message.through
    // @ts-expect-error There is no such message.
    case 'split':
      return ''
    default:
      return message.type
  }
}
const record: TokenRecord = { symbol: 'AAPLc', decimals: 8, added_later: true }
export const decimals: number | undefined = record.decimals
// @ts-expect-error Decimals are a number.
export const text: string = record.decimals
export const suggest = (record: ErrorRecord): unknown => record.details[0]?.suggest
export const request: Request = { type: 'subscribe', symbols: ['AAPLc'], snapshot: 'always' }
`

it('the TypeScript types compile strictly, accept every example and refuse mistakes', () => {
  const folder = mkdtempSync(join(tmpdir(), 'stocktape-types-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const { updates, notices } = messageTypes
  const received = examples.filter(({ type }) => [...updates, ...notices].some((known) => known === type))
  const lines = received.map((example) => `  ${JSON.stringify(example)},\n`).join('')
  writeFileSync(join(folder, 'types.ts'), typescriptTypes())
  writeFileSync(join(folder, 'client.ts'), client)
  writeFileSync(
    join(folder, 'examples.ts'),
    `import type { Message } from './types.ts'\nexport const examples: readonly Message[] = [\n${lines}]\n`,
  )
  const flags = ['--strict', '--noEmit', '--target', 'es2022', '--module', 'nodenext', '--allowImportingTsExtensions']
  const files = ['client.ts', 'examples.ts'].map((file) => join(folder, file))
  const { stdout, status } = spawnSync(process.execPath, [tsc, ...flags, ...files], { cwd: folder, encoding: 'utf8' })
  expect([status, stdout]).toEqual([0, ''])
  expect(received.length).toBeGreaterThan(updates.length)
})
