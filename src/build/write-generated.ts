import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import '../protocol/history.ts'
import '../protocol/service-status.ts'
import { typescriptTypes } from '../docs/typescript-types.ts'
import { camelCaseOf } from '../lib/text.ts'
import { intervals } from '../protocol/bars/bars-query.ts'
import { exampleOf, statusExample } from '../protocol/contract-examples.ts'
import { Notice } from '../protocol/notices.ts'
import { filterNames, valueFilters } from '../protocol/parameters/value-filters.ts'
import { followingTypes, namedTypes, typesOfKind, updateTypes } from '../protocol/updates.ts'
import { fileSentence } from '../relay/config/serve-command-line.ts'
import { type AnySetting, groupTitles, settingGroups } from '../relay/config/settings.ts'
import { type LogLine, logLines } from '../relay/log-lines.ts'

/**
 * Writes the files that are made from the tables: `src/sdk/generated`, which is all that the SDK knows of the contract, for
 * it imports nothing of the relay; `docs/configuration.md` and `docs/log.md`. An argument names another root to write into.
 */

const [root = fileURLToPath(new URL('../../', import.meta.url))] = process.argv.slice(2)
function write(file: string, text: string): void {
  const path = join(root, file)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

/** Shorter than an array. The comment lets a bundler leave out the lists that a page does not use. */
const list = (names: readonly string[]): string => `/* @__PURE__ */ '${names.join(' ')}'.split(' ')`

const filterOptions = filterNames
  .map((name) => {
    const { description, form } = valueFilters[name]
    return `  /** ${description} */\n  readonly ${camelCaseOf(name)}?: ${form === 'number' ? 'string | number' : 'string | readonly string[]'}\n`
  })
  .join('')

write('src/sdk/generated/messages.ts', typescriptTypes())
for (const path of ['key-life.ts', 'decimal.ts', 'bars/bar-fold.ts'])
  write(
    `src/sdk/generated/${basename(path)}`,
    readFileSync(new URL(`../protocol/${path}`, import.meta.url), 'utf8').replaceAll("'../", "'./"),
  )
write(
  'src/sdk/generated/bar-intervals.ts',
  `/** The lengths of bars, in seconds. */
export const barIntervals = ${JSON.stringify(intervals)} as const
`,
)
write(
  'src/sdk/generated/examples.ts',
  `import type { Message, ServiceStatus } from './messages.ts'

/** A message of each type, from the contract page. */
export const examples: { readonly [Type in Message['type']]: Extract<Message, { readonly type: Type }> } = {
${[...updateTypes, ...Notice.options.map(({ shape }) => shape.type.value)]
  .map((type) => `  ${type}: ${JSON.stringify(exampleOf(type))},\n`)
  .join('')}}

export const statusExample: ServiceStatus = ${JSON.stringify(statusExample)}
`,
)
write(
  'src/sdk/generated/names.ts',
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

const settingRow = ([name, setting]: readonly [string, AnySetting]): string => {
  const { default: fallback, description, mayHoldSecret } = setting
  return `| \`${name}\`${mayHoldSecret ? ' [file]' : ''} | ${fallback ?? '–'} | ${description} |\n`
}

const settingSections = Object.entries(settingGroups).map(
  ([group, settings]) => `
## ${groupTitles[group as keyof typeof settingGroups]}

| name | default | |
|---|---|---|
${Object.entries<AnySetting>(settings).map(settingRow).join('')}`,
)

write(
  'docs/configuration.md',
  `# Configuration

Each setting is an environment variable, or a flag of the same name: \`PENDING_POLL\` is \`--pending-poll\`. A flag wins over the
environment, which wins over the file that \`--env-file PATH\` names. \`stocktape serve --help\` prints the same texts. The relay does
not start with a misspelt setting; it only warns if the variable may belong to another program.

Times are written \`200ms\`, \`15s\`, \`5m\`, \`24h\` or \`30d\`, and sizes \`64KiB\`, \`1MiB\` or \`1GiB\`.

${fileSentence} If both are set, the relay does not start. The file may end with an empty line.
${settingSections.join('')}`,
)

write(
  'docs/log.md',
  `# Log lines

The relay writes one line for each event to standard error. [operate.md](operate.md#log) explains the fields. A line with an asterisk is
written once a minute while its condition lasts, with the number of omitted lines in \`more_since_last\`; each other line once for each event.

| \`kind\` | level | \`msg\` |
|---|---|---|
${Object.entries<LogLine>(logLines)
  .map(([kind, { level, sentence, repeats }]) => `| \`${kind}\` | ${level}${repeats ? ' *' : ''} | ${sentence} |\n`)
  .join('')}`,
)
