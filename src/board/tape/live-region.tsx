import { useEffect, useState } from 'preact/hooks'
import type { BoardFeed } from '../feed/board-feed.ts'
import { lineSentence } from './tape-texts.ts'

/** One sentence in so long, so that a screen reader can finish it. */
const INTERVAL_MS = 5_000

/** What a screen reader hears of the tape: the newest line, and how many came beside it. */
export function LiveRegion({ feed }: { readonly feed: BoardFeed }) {
  const [text, setText] = useState('')
  useEffect(() => {
    let announced = feed.lines.newest
    const timer = setInterval(() => {
      const { newest } = feed.lines
      const line = feed.lines.at(newest)
      if (newest === announced || !line) return
      const others = newest - announced - 1
      announced = newest
      setText(`${lineSentence(line, feed.head)}${others > 0 ? `, and ${others} more` : ''}`)
    }, INTERVAL_MS)
    return () => clearInterval(timer)
  }, [feed])
  return (
    <p class="unseen" aria-live="polite">
      {text}
    </p>
  )
}
