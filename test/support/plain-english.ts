import { globSync, readFileSync } from 'node:fs'

/** Finds words that an engineer has to read twice. Part of `npm run lint`: `node test/support/plain-english.ts` reads all. */

/** A tooltip shows a comment alone, so it cannot continue the one before it. */
const openings = /^(What|The same|Of|How often)\b/
const phrases = [/\bhow\s+often\b/i, /\b(go|goes|going|went)\s+on\b/i, /\bcomes?\s+(again|back)\b/i, /\banew\b/i, /\bfor\s+ever\b/i]

/** The comments of a program, each as one line. */
const commentsOf = (program: string): readonly string[] =>
  [...program.matchAll(/\/\*\*?([\s\S]*?)\*\/|(?:^|\s)\/\/ (.*(?:\n\s*\/\/ .*)*)/g)].map(([, block = '', lines = '']) =>
    `${block}${lines}`.replaceAll(/\n\s*(\*|\/\/) ?/g, ' ').trim(),
  )

/** The paragraphs and rows of a page, without its code, and without the names of tests that a table quotes. */
const paragraphsOf = (page: string): readonly string[] =>
  page.replaceAll(/```[\s\S]*?```|`[^`\n]*`|› [^|;\n]*/g, '…').split(/\n\n|\n(?=[|\-#])/)

/** The sentences of a file that should be written in other words. */
export const hardSentences = (path: string, text: string): readonly string[] => {
  const isPage = path.endsWith('.md')
  return (isPage ? paragraphsOf(text) : commentsOf(text)).filter(
    (sentence) => (!isPage && openings.test(sentence)) || phrases.some((phrase) => phrase.test(sentence)),
  )
}

if (import.meta.main) {
  const files = globSync(['src/**/*.{ts,tsx}', 'src/**/*.md', 'docs/**/*.md', 'README.md', 'test/README.md', '.github/*.md'])
  const found = files.flatMap((path) => hardSentences(path, readFileSync(path, 'utf8')).map((sentence) => `${path}: ${sentence}`))
  for (const line of found) process.stderr.write(`${line.replaceAll(/\s+/g, ' ').slice(0, 200)}\n`)
  if (found.length > 0)
    process.stderr.write(`${found.length} sentences need plainer words: see "Rules" in .github/CONTRIBUTING.md\n`)
  process.exitCode = found.length > 0 ? 1 : 0
}
