import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename } from 'node:path'
import { z } from 'zod'

const require = createRequire(import.meta.url)

const Output = z.object({
  errors: z.array(z.object({ severity: z.string(), formattedMessage: z.string() })).optional(),
  contracts: z
    .record(z.string(), z.record(z.string(), z.object({ evm: z.object({ bytecode: z.object({ object: z.string() }) }) })))
    .optional(),
})

const compiled = new Map<string, `0x${string}`>()

/** The bytecode of the contract that has the name of its file. Compiles it once, in about a second; it may import packages. */
export function compileContract(path: string): `0x${string}` {
  const known = compiled.get(path)
  if (known) return known
  const solc: { compile(input: string, callbacks: object): string } = require('solc')
  const file = basename(path)
  const settings = { evmVersion: 'paris', outputSelection: { '*': { '*': ['evm.bytecode.object'] } } }
  const sources = { [file]: { content: readFileSync(path, 'utf8') } }
  const readImport = (name: string) => ({ contents: readFileSync(require.resolve(name), 'utf8') })
  const output = solc.compile(JSON.stringify({ language: 'Solidity', sources, settings }), { import: readImport })
  const { errors = [], contracts } = Output.parse(JSON.parse(output))
  const object = contracts?.[file]?.[file.replace('.sol', '')]?.evm.bytecode.object
  if (!object) throw new Error(errors.map(({ formattedMessage }) => formattedMessage).join('\n'))
  const bytecode = `0x${object}` as const
  compiled.set(path, bytecode)
  return bytecode
}
