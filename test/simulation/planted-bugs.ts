import { createHash } from 'node:crypto'
import { map } from 'rxjs'
import type { Hex } from '../../src/lib/hex.ts'
import type { Draft, DraftOf, Update } from '../../src/protocol/updates.ts'
import type { RequestFn } from '../../src/relay/chain/rpc/endpoint-pool.ts'
import { restartPointNote } from '../../src/relay/ingest/restore-state.ts'
import { Notes } from '../../src/relay/tape/notes.ts'
import type { Tape, TapeWriter } from '../../src/relay/tape/tape.ts'
import { parseUpdate } from '../../src/relay/tape/tape-row.ts'
import { isFact } from './laws/published-facts.ts'
import { plantedBarBugs } from './planted-bar-bugs.ts'
import { plantedLieBugs } from './planted-lie-bugs.ts'
import { plantedMachineBugs } from './planted-machine-bugs.ts'
import { plantedTokenBugs } from './planted-token-bugs.ts'
import { plantedTradeBugs } from './planted-trade-bugs.ts'
import { headerJson } from './simulated-node-json.ts'
import type { ModifyInputs, Simulation } from './simulation.ts'
import { alterAppends, wrap } from './tape-wrappers.ts'

/** Bugs planted on purpose in what the relay receives or writes. The checker has to find every one. */

type AlterDrafts = (drafts: readonly Draft[], tape: Tape) => readonly Draft[]

const LOSS_INTERVAL = 20
const FORGOTTEN_BLOCKS = 20

/** Changes what the relay writes. */
const alterWrites =
  (alter: AlterDrafts): ModifyInputs =>
  (inputs) => ({ ...inputs, writer: alterAppends(inputs, (drafts) => alter(drafts, inputs.tape)) })

const dropDrafts = (isLost: (draft: Draft) => boolean): ModifyInputs =>
  alterWrites((drafts) => drafts.filter((draft) => !isLost(draft)))

/** Changes every draft of a type. */
const alterDrafts = <Type extends Draft['type']>(type: Type, change: (draft: DraftOf<Type>, tape: Tape) => Draft): ModifyInputs =>
  alterWrites((drafts, tape) => drafts.map((draft) => (draft.type === type ? change(draft as DraftOf<Type>, tape) : draft)))

const alterRequests =
  (change: (request: RequestFn, simulation: Simulation) => RequestFn): ModifyInputs =>
  (inputs, simulation) => ({ ...inputs, request: change(inputs.request, simulation) })

/** The bug exists only after the first restart. */
const afterRestart =
  (modifyInputs: ModifyInputs): ModifyInputs =>
  (inputs, simulation) =>
    simulation.runCount > 1 ? modifyInputs(inputs, simulation) : inputs

const isFactDraft = (draft: Draft): boolean => isFact(draft as Update)
const isSealedFact = (draft: Draft): boolean => isFactDraft(draft) && 'stage' in draft && draft.stage === 'sealed'

export const plantedBugs: Readonly<Record<string, ModifyInputs>> = {
  ...plantedTokenBugs,
  ...plantedMachineBugs,
  ...plantedLieBugs,
  ...plantedTradeBugs,
  ...plantedBarBugs,
  'every 20th fact is lost': (inputs, simulation) => {
    let written = 0
    const isLost = (draft: Draft) => {
      if (isFactDraft(draft)) written += 1
      return isFactDraft(draft) && written % LOSS_INTERVAL === 0
    }
    return dropDrafts(isLost)(inputs, simulation)
  },
  'the ingest skips a number': (inputs) => {
    let written = 0
    const append: TapeWriter['append'] = (batch) => {
      written += batch.updates.length
      return inputs.writer.append({ ...batch, first: batch.first + (written > LOSS_INTERVAL ? 1 : 0) })
    }
    return { ...inputs, writer: wrap(inputs.writer, { append }) }
  },
  'nothing is ever retracted': dropDrafts(({ type }) => type === 'retract'),
  'nothing is ever amended': dropDrafts(({ type }) => type === 'amend'),
  'subscribers miss every fifth sealed block': (inputs) => ({
    ...inputs,
    onChainEvent: (event) =>
      inputs.onChainEvent(
        event.type === 'sealed' ? { ...event, blocks: event.blocks.filter(({ number }) => number % 5 > 0) } : event,
      ),
  }),
  'a hole is not published': dropDrafts(({ type }) => type === 'hole'),
  'a silent source is never noticed': dropDrafts((draft) => draft.type === 'status' && draft.reason === 'silent'),
  'a seal comes before its late facts': alterWrites((drafts) => [
    ...drafts.filter((draft) => !isSealedFact(draft)),
    ...drafts.filter(isSealedFact),
  ]),
  '`late` is always false': alterWrites((drafts) =>
    drafts.map((draft) =>
      draft.type === 'seal' ? { ...draft, late_keys: [] } : isSealedFact(draft) ? ({ ...draft, late: false } as Draft) : draft,
    ),
  ),
  'a replaced fact is retracted as not_sealed': alterDrafts('retract', (draft) =>
    draft.reason === 'replaced' ? { ...draft, reason: 'not_sealed', replaced_by: null } : draft,
  ),
  'a reorganised fact is retracted as not_sealed': alterDrafts('retract', (draft) =>
    draft.reason === 'reorg' ? { ...draft, reason: 'not_sealed' } : draft,
  ),
  '`fact_id` names the end of the tape': alterDrafts('retract', (draft, tape) => ({
    ...draft,
    fact_id: `${tape.epoch}.${tape.end()}`,
  })),
  'the digest is over another order': alterDrafts('seal', (draft) => ({
    ...draft,
    digest: createHash('sha256').update(draft.keys.toReversed().join('\n')).digest('hex').slice(0, 32),
  })),
  'the age of a NAV is always zero': alterDrafts('transfer', (draft) => ({ ...draft, nav: { ...draft.nav, age_s: 0 } })),
  'equal logs of a transaction are published once': alterWrites((drafts) => {
    const seen = new Set<string>()
    return drafts.filter((draft) => {
      if (draft.type !== 'transfer') return true
      const name = [draft.tx.hash, draft.address, draft.from, draft.to, draft.raw].join()
      return seen.size < seen.add(name).size
    })
  }),
  'a restart settles the last blocks again': afterRestart((inputs) => ({
    ...inputs,
    tape: wrap(inputs.tape, {
      readTexts: () => [],
      notes: wrap(inputs.tape.notes, {
        note: (note) => {
          const restartPoint = inputs.tape.notes.note(restartPointNote)
          if (note.name !== restartPointNote.name || !restartPoint) return inputs.tape.notes.note(note)
          return note.read({ ...restartPoint, block: restartPoint.block - FORGOTTEN_BLOCKS, hash: null })
        },
      }),
    }),
  })),
  'a restart forgets open keys': afterRestart((inputs) => ({
    ...inputs,
    tape: wrap(inputs.tape, {
      readTexts: (after, limit) => inputs.tape.readTexts(after, limit).filter(({ text }) => !isFact(parseUpdate(text))),
    }),
  })),
  'answers of a lagging node are believed': alterRequests((request, { chain }) => (method, params, signal) => {
    const [filter] = params as readonly { blockHash?: Hex; fromBlock?: string }[]
    // The bug takes a block that the node does not know yet for an empty one, and the node's head for the chain's.
    return request(method, params, signal).then(
      (answer) => {
        const block = chain.block(Number(params[0]))
        return method === 'eth_getBlockByNumber' && answer === null && block ? headerJson(block.onChain) : answer
      },
      (failure: unknown) => {
        if (filter?.blockHash !== undefined) return []
        throw failure
      },
    )
  }),
  'a reorganisation is ignored': (inputs, { chain }) => {
    const first = (number: number) => chain.blocksByNumber.get(number)?.[0]
    const frozen = (header: unknown): unknown => {
      const block = first(Number((header as { number?: string } | null)?.number))
      const parent = block && first(block.number - 1)
      return block && parent ? headerJson({ ...block.onChain, parentHash: parent.hash }) : header
    }
    const request: RequestFn = async (method, params, signal) => {
      const [filter] = params as readonly { blockHash?: Hex; address?: readonly Hex[] }[]
      const block = filter?.blockHash === undefined ? undefined : chain.blocksByHash.get(filter.blockHash)
      if (method === 'eth_getLogs' && block) return block.onChain.logs.filter((log) => filter?.address?.includes(log.address))
      const answer = await inputs.request(method, params, signal)
      return method === 'eth_getLogs' ? answer : frozen(answer)
    }
    const { link } = inputs
    return {
      ...inputs,
      request,
      link:
        link &&
        ((inputs) =>
          link(inputs).pipe(map((signal) => (signal.type === 'head' ? { ...signal, header: frozen(signal.header) } : signal)))),
    }
  },
  'a poll that returns less retracts': (inputs, { chain }) => {
    const publishedUpdates = new Map<string, Update>()
    let shown = new Set<string>()
    const keyOf = (log: Record<string, string>) => `${Number(log.blockNumber)}-${log.transactionHash}-${Number(log.logIndex)}`
    const request: RequestFn = async (method, params, signal) => {
      const answer = await inputs.request(method, params, signal)
      if ((params[0] as { toBlock?: string }).toBlock !== 'pending' || !Array.isArray(answer)) return answer
      const now = new Set<string>(answer.map(keyOf))
      const gone = [...shown].flatMap((key) => (now.has(key) ? [] : (publishedUpdates.get(key) ?? [])))
      shown = now
      const drafts = gone.flatMap((update): Draft[] => {
        if (!isFact(update)) return []
        const { key, type: fact_type, id: fact_id, symbol, address, time } = update
        const block = { ...update.block, hash: chain.block(chain.head)?.hash ?? null }
        const retract = { symbol, address, time, key, fact_type, fact_id, block }
        return [{ type: 'retract', ...retract, reason: 'not_sealed', replaced_by: null, restored: null }]
      })
      if (drafts.length > 0) void append({ first: 0, updates: drafts, notes: new Notes(), keepAfter: Number.POSITIVE_INFINITY })
      return answer
    }
    // The updates of the bug shift the numbers that the ingest gives.
    const append: TapeWriter['append'] = async (batch) => {
      const entries = await inputs.writer.append({ ...batch, first: inputs.tape.next })
      for (const { update } of entries) if (isFact(update)) publishedUpdates.set(update.key, update)
      return entries
    }
    return { ...inputs, request, writer: wrap(inputs.writer, { append }) }
  },
  'the newest block is published as safe': alterRequests(
    (request) => (method, params, signal) =>
      request(method, (params[0] === 'safe' ? ['latest', false] : params) as typeof params, signal),
  ),
}
