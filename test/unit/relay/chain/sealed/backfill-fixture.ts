import { addRange } from '../../../../../src/relay/chain/blocks/block-ranges.ts'
import { openSealedBlocks } from './sealed-chain-fixture.ts'

/** A backfill of a scripted chain in virtual time. */
export const openBackfill = () => {
  const opened = openSealedBlocks()
  const add = (from: number, to: number, missingReason: string | null = null) =>
    opened.change((state) => ({ ...state, unread: addRange(state.unread, { from, to, missingReason, readableAt: 0 }) }))
  return { ...opened, add }
}
