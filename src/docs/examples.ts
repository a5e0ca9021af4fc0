import { readFileSync } from 'node:fs'

/** One message as the contract's page shows it. */
export type Example = { readonly type: string } & Readonly<Record<string, unknown>>

/** The contract's page, for whoever opens its folder. */
export const readme = readFileSync(new URL('../protocol/README.md', import.meta.url), 'utf8')

/** Every message in the page's json blocks: a block is one message, or one on each line. */
export const examples: readonly Example[] = [...readme.matchAll(/^```json\n([\s\S]*?)^```$/gm)].flatMap(
  ([, codeBlock = '']) =>
    codeBlock.startsWith('{\n')
      ? [JSON.parse(codeBlock)]
      : codeBlock
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line)),
)

export const examplesOf = (type: string): readonly Example[] => examples.filter((example) => example.type === type)

/** How the service may be, as the page shows it. */
export const statusExample: unknown = JSON.parse(
  (/^```jsonc\n([\s\S]*?)^```$/m.exec(readme)?.[1] ?? 'null').replaceAll(/ \/\/ .*$/gm, ''),
)
