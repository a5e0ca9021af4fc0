import { z } from 'zod'
import { ChainIdentity } from '../chain/rpc/chain-identity.ts'
import type { Config } from '../config/config.ts'
import { demoNote } from '../notes/published-notes.ts'
import { defineNote } from '../tape/notes.ts'
import { type Tape, type TapeWriter, WrongTapeError } from '../tape/tape.ts'

type TapeChainInputs = {
  readonly config: {
    readonly chain: Pick<Config['chain'], 'chainId' | 'upstreamRpcUrl'>
    readonly tape: Pick<Config['tape'], 'dataDir' | 'natsUrl' | 'natsStream'>
  }
  /** Called when the tape turns out to be of another chain than this process or its upstream. */
  readonly onFailure: (failure: unknown) => void
}

const chainIdNote = defineNote<number>('chain', z.int())

/** The chain of this tape. A tape holds one chain only: with two, its positions and keys would mean nothing. */
export function openTapeChainId(tape: Pick<Tape, 'notes' | 'follow'>, { config, onFailure }: TapeChainInputs): ChainIdentity {
  const { chainId: givenId = null, upstreamRpcUrl } = config.chain
  const tapeChainId = tape.notes.note(chainIdNote)
  if (tapeChainId === undefined) {
    const chain = new ChainIdentity(givenId, 'CHAIN_ID')
    // Another process may be the first that learns the chain and writes it to the tape.
    const unfollow = tape.follow((_, notes) => {
      const id = notes.note(chainIdNote)
      if (id === undefined) return
      unfollow()
      if (chain.findMismatch(id)) onFailure(wrongTape(config, id, `and this process is of chain ${chain.id}`))
    })
    return chain
  }
  if (givenId === tapeChainId) return new ChainIdentity(tapeChainId, 'CHAIN_ID')
  if (givenId !== null) throw wrongTape(config, tapeChainId, `CHAIN_ID says ${givenId}`)
  const chain = new ChainIdentity(tapeChainId, `the tape in DATA_DIR ${config.tape.dataDir}`, () => {
    if (!chain.isConfirmed && chain.isWrong(upstreamRpcUrl))
      onFailure(wrongTape(config, tapeChainId, 'and every upstream URL is of another chain'))
  })
  return chain
}

const wrongTape = ({ tape: { natsUrl, natsStream, dataDir } }: TapeChainInputs['config'], chainId: number, other: string) =>
  new WrongTapeError(
    natsUrl
      ? `NATS_STREAM ${natsStream} holds the tape of chain ${chainId}, ${other}: name another stream`
      : `DATA_DIR ${dataDir} holds the tape of chain ${chainId}, ${other}: name another folder`,
  )

/** Writes the chain, once it is known, in one transaction with the batch: no update is ever on a tape without a chain. */
export const writerWithChainId = (
  tape: Pick<Tape, 'notes'>,
  writer: TapeWriter,
  { chain, isBuiltIn }: { readonly chain: ChainIdentity; readonly isBuiltIn: boolean },
): TapeWriter => ({
  append: (batch) => {
    const { notes } = batch
    if (chain.id !== null && tape.notes.note(chainIdNote) !== chain.id) notes.set(chainIdNote, chain.id)
    if ((tape.notes.note(demoNote) ?? false) !== isBuiltIn) notes.set(demoNote, isBuiltIn)
    return writer.append(batch)
  },
})
