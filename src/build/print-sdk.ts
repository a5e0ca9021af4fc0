import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import '../protocol/history.ts'
import '../protocol/status.ts'
import { typescriptTypes } from '../docs/typescript-types.ts'
import { camelCaseOf } from '../lib/camel-case.ts'
import { followingTypes, namedTypes, typesOfKind, updateTypes } from '../protocol/updates.ts'
import { filterNames, valueFilters } from '../protocol/value-filters.ts'

/** Prints `src/sdk/generated`: what the SDK knows of the contract, for it imports nothing of the relay. */

const [folder = fileURLToPath(new URL('../sdk/generated/', import.meta.url))] = process.argv.slice(2)
const write = (file: string, text: string) => writeFileSync(`${folder}/${file}`, text)

/** Shorter than an array. The comment lets a bundler leave out the lists that a page does not use. */
const list = (names: readonly string[]): string => `/* @__PURE__ */ '${names.join(' ')}'.split(' ')`

const filterOptions = filterNames
  .map((name) => {
    const { description, isNumber } = valueFilters[name]
    return `  /** ${description} */\n  readonly ${camelCaseOf(name)}?: ${isNumber ? 'string | number' : 'string'}\n`
  })
  .join('')

write('messages.ts', typescriptTypes())
write(
  'names.ts',
  `// The names of stocktape.v1 that a client must know, made from the tables of the relay.

/** The messages of the tape. A newer relay may send others, which a client ignores. */
export const updateTypes: readonly string[] = ${list(updateTypes)}

/** The types that a listener receives only if it names them. */
export const namedTypes: readonly string[] = ${list(namedTypes)}

/** The types that tell what became of a fact: a listener that did not name them receives those of its facts. */
export const followingTypes: readonly string[] = ${list(followingTypes)}

/** The types that make up the state of the tokens and of the relay. */
export const stateTypes: readonly string[] = ${list(typesOfKind('change', 'state', 'reading'))}

/** The types that are repeated all the time; the next message replaces the one before. */
export const readingTypes: readonly string[] = ${list(typesOfKind('reading'))}

/** Only facts that pass these filters. A stream with one of them has no chains of \`prev\`. */
export type ValueFilters = {
${filterOptions}}

/** Each of them, and its parameter. */
export const filterParameters: readonly (readonly [option: keyof ValueFilters, parameter: string])[] = [${filterNames
    .map((name) => `['${camelCaseOf(name)}', '${name}']`)
    .join(', ')}]
`,
)
