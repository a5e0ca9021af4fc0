import { program } from './snippets.ts'

/** Whole programs and pages to copy, one file each. */

export type Recipe = {
  readonly id: string
  readonly title: string
  readonly paragraphs: readonly string[]
  /** Code to copy, if the recipe has any. */
  readonly source?: string
}

const INSTALL = 'In the folder of the page: npm install stocktape'

export const programRecipes: readonly Recipe[] = [
  {
    id: 'page-library',
    title: 'A page with the library',
    paragraphs: [`All symbols with their NAV, and live transfers. It survives a restart of the relay. ${INSTALL}.`],
    source: program('page.html').trimEnd(),
  },
  {
    id: 'react',
    title: 'React',
    paragraphs: [
      'The same with useTape. npm install stocktape react react-dom. All components of a page, and all tabs of a browser, share one connection. useStock(symbol) is the state of one stock, useFeed() the state of the connection. A server renders the empty state.',
    ],
    source: program('tape.jsx').trimEnd(),
  },
  { id: 'vue', title: 'Vue', paragraphs: [`A book in a shallowRef. ${INSTALL} vue.`], source: program('vue.html').trimEnd() },
  {
    id: 'svelte',
    title: 'Svelte',
    paragraphs: [`A book as a store. ${INSTALL} svelte.`],
    source: program('Tape.svelte').trimEnd(),
  },
  {
    id: 'chart',
    title: 'A chart of NAV and quote',
    paragraphs: [
      `The lightweight-charts library of TradingView; its licence asks for the link. ${INSTALL} lightweight-charts. The quote is a price in a pool on the chain, in USDC, taken as one dollar each. The NAV is a reference value.`,
    ],
    source: program('chart.html').trimEnd(),
  },
  {
    id: 'event-source',
    title: 'A page without the library',
    paragraphs: ['Nothing but EventSource, which reconnects and resumes by itself.'],
    source: program('event-source.html').trimEnd(),
  },
  {
    id: 'jq',
    title: 'A table in a shell',
    paragraphs: ['Columns that other programs can read.'],
    source: program('transfers.sh').trimEnd(),
  },
  {
    id: 'viem',
    title: 'viem',
    paragraphs: [
      'The relay is a node: logs of all listed tokens, as they are pre-confirmed. A log that did not happen comes again with removed: true.',
    ],
    source: program('viem.js').trimEnd(),
  },
]
