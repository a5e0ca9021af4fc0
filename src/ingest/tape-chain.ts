import { ChainIdentity } from '../chain/rpc/chain-id.ts'
import type { Config } from '../config.ts'
import { defineNote, Notes } from '../tape/notes.ts'
import { type Tape, TapeError } from '../tape/tape.ts'

const chainIdNote = defineNote<number>('chain')

/** The chain of this tape. A tape never holds two chains: their positions and keys would mean nothing. */
export function openTapeChain(config: Config, tape: Tape): ChainIdentity {
  const tapeChainId = tape.note(chainIdNote)
  if (tapeChainId === undefined) return new ChainIdentity(config.CHAIN_ID ?? null, 'CHAIN_ID')
  if (config.CHAIN_ID !== undefined && config.CHAIN_ID !== tapeChainId) {
    throw new TapeError(
      `DATA_DIR ${config.DATA_DIR} holds the tape of chain ${tapeChainId}, CHAIN_ID says ${config.CHAIN_ID}: name another folder`,
    )
  }
  return new ChainIdentity(tapeChainId, `the tape in DATA_DIR ${config.DATA_DIR}`)
}

/** Writes the chain beside the tape once it is known. */
export async function saveTapeChain(tape: Tape, { id }: ChainIdentity): Promise<void> {
  if (id !== null && tape.note(chainIdNote) !== id) await tape.append([], new Notes().set(chainIdNote, id))
}
