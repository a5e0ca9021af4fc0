import { expect, it } from 'vitest'
import { hardSentences } from '../support/plain-english.ts'

it.each([
  ['a.ts', '/** What the reader gets. */\nconst a = 1', ['What the reader gets.']],
  ['a.ts', '/**\n * Of the same kind, and\n * read later.\n */', ['Of the same kind, and read later.']],
  ['a.ts', 'const a = 1 // How often it runs', ['How often it runs']],
  ['a.ts', '// A line that\n// goes on here', ['A line that goes on here']],
  ['a.ts', "const url = 'http://comes.again/anew'\n/** Reads the log. */", []],
  ['a.md', 'The log goes\non.\n\nIt ends.', ['The log goes\non.']],
  ['a.md', '| 1 | It restarts. | `test/a.test.ts` › goes on for ever |\n| 2 | It begins anew. | |', ['| 2 | It begins anew. | |']],
  ['a.md', '```ts\n// anew\n```\nThe `how often` flag.', []],
])('the lint step finds hard sentences in %s: %j', (path, text, sentences) => {
  expect(hardSentences(path, text)).toEqual(sentences)
})
