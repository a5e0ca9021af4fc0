import { readFileSync } from 'node:fs'
import type { Message } from './notices.ts'

export type Example = { readonly type: string } & Readonly<Record<string, unknown>>

export const readme = readFileSync(new URL('README.md', import.meta.url), 'utf8')

/** All messages in the JSON blocks of the contract page. A block contains one message, or one in each line. */
export const examples: readonly Example[] = [...readme.matchAll(/^```json\n([\s\S]*?)^```$/gm)].flatMap(([, codeBlock = '']) =>
  codeBlock.startsWith('{\n')
    ? [JSON.parse(codeBlock)]
    : codeBlock
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
)

export const examplesOf = (type: string): readonly Example[] => examples.filter((example) => example.type === type)

/** Returns the first example of a type. A test parses every example with its schema. */
export const exampleOf = <Type extends Message['type']>(type: Type): Extract<Message, { type: Type }> =>
  ({ ...examplesOf(type)[0] }) as unknown as Extract<Message, { type: Type }>

export const statusExample: unknown = JSON.parse(
  (/^```jsonc\n([\s\S]*?)^```$/m.exec(readme)?.[1] ?? 'null').replaceAll(/ \/\/ .*$/gm, ''),
)
