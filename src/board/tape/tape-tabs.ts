import type { TapeShow } from '../shared/board-route.ts'
import { isFolded, type TapeLine } from './tape-lines.ts'

/** Types of a movement of tokens. */
export const moves = ['transfer', 'mint', 'burn', 'seize']

type Tab = { readonly title: string; readonly shows: (line: TapeLine) => boolean; readonly empty: string }

const isOf = ({ content: { type } }: TapeLine) => (type === 'trade' ? 'trades' : moves.includes(type) ? 'moves' : 'events')

/** Contents of each part of the tape. A gap is in all of them, because messages of any part may be missing. */
export const tapeTabs: Readonly<Record<TapeShow, Tab>> = {
  all: {
    title: 'All',
    shows: (line) => !isFolded(line),
    empty: 'Nothing yet. A quiet market is normal: a line appears when a token moves.',
  },
  trades: {
    title: 'Trades',
    shows: (line) => isOf(line) === 'trades',
    empty: 'No trades yet: a line appears when a pool swaps a token.',
  },
  moves: { title: 'Moves', shows: (line) => isOf(line) === 'moves', empty: 'No token has moved yet.' },
  events: {
    title: 'Events',
    shows: (line) => isOf(line) === 'events',
    empty: 'No events: splits, pauses and news of the feed appear here.',
  },
  retracted: {
    title: 'Retracted',
    shows: ({ retraction }) => retraction !== null,
    empty: 'Nothing was retracted: all that this page has read is sealed, or still open.',
  },
}

/** The lines of a part, of one token or of all. */
export function linesOf(lines: readonly TapeLine[], tab: TapeShow, address: string | null): readonly TapeLine[] {
  const { shows } = tapeTabs[tab]
  return lines.filter((line) => {
    const { content } = line
    if (content.type === 'gap') return true
    return (address === null || content.address === address) && shows(line)
  })
}
