import { createHash } from 'node:crypto'
import { catchError, map, of, tap } from 'rxjs'
import type { RequestFn } from '../../src/chain/rpc/client.ts'
import { restartPointNote } from '../../src/ingest/restore.ts'
import type { Hex } from '../../src/protocol/fields.ts'
import type { Draft, DraftOf, Update } from '../../src/protocol/updates.ts'
import { anyOpenKeyNotes } from '../../src/tape/notes.ts'
import type { Tape } from '../../src/tape/tape.ts'
import { isFact } from './laws/published-facts.ts'
import { plantedTokenBugs } from './planted-token-bugs.ts'
import { headerJson, logJson } from './simulated-node-json.ts'
import type { ModifyInputs, Simulation } from './simulation.ts'
import { wrapTape } from './tape-wrappers.ts'

/** Bugs that are put in on purpose, around what the relay is handed: the checker has to find every one of them. */

type AlterDrafts = (drafts: readonly Draft[], tape: Tape) => readonly Draft[]

const LOSS_INTERVAL = 20
const FORGOTTEN_BLOCKS = 20

/** Writes something else than what was to be written. */
const alterWrites =
  (alter: AlterDrafts): ModifyInputs =>
  (inputs) => ({
    ...inputs,
    tape: wrapTape(inputs.tape, {
      append: (drafts, notes) => inputs.tape.append(alter(drafts, inputs.tape), notes),
    }),
  })

const dropDrafts = (lost: (draft: Draft) => boolean): ModifyInputs =>
  alterWrites((drafts) => drafts.filter((draft) => !lost(draft)))

/** Changes every draft of a type. */
const alterDrafts = <Type extends Draft['type']>(
  type: Type,
  change: (draft: DraftOf<Type>, tape: Tape) => Draft,
): ModifyInputs =>
  alterWrites((drafts, tape) =>
    drafts.map((draft) => (draft.type === type ? change(draft as DraftOf<Type>, tape) : draft)),
  )

const alterRequests =
  (change: (ask: RequestFn, simulation: Simulation) => RequestFn): ModifyInputs =>
  (inputs, simulation) => ({ ...inputs, request: change(inputs.request, simulation) })

/** Only from the second life on. */
const afterRestart =
  (modifyInputs: ModifyInputs): ModifyInputs =>
  (inputs, simulation) =>
    simulation.runCount > 1 ? modifyInputs(inputs, simulation) : inputs

const isFactDraft = (draft: Draft): boolean => isFact(draft as Update)
const isSealedFact = (draft: Draft): boolean => isFactDraft(draft) && 'stage' in draft && draft.stage === 'sealed'

export const plantedBugs: Readonly<Record<string, ModifyInputs>> = {
  ...plantedTokenBugs,
  'every 20th message is lost': (inputs, simulation) => {
    let written = 0
    const isLost = (draft: Draft) => {
      if (isFactDraft(draft)) written += 1
      return isFactDraft(draft) && written % LOSS_INTERVAL === 0
    }
    return dropDrafts(isLost)(inputs, simulation)
  },
  'nothing is ever retracted': dropDrafts(({ type }) => type === 'retract'),
  'nothing is ever amended': dropDrafts(({ type }) => type === 'amend'),
  'a sealed block in five is not overheard': (inputs) => ({
    ...inputs,
    onChainEvent: (publishedUpdates) =>
      inputs.onChainEvent(
        publishedUpdates.type === 'sealed'
          ? { ...publishedUpdates, blocks: publishedUpdates.blocks.filter(({ number }) => number % 5 > 0) }
          : publishedUpdates,
      ),
  }),
  'a hole is passed over in silence': dropDrafts(({ type }) => type === 'hole'),
  'a silent source is never noticed': dropDrafts((draft) => draft.type === 'status' && draft.reason === 'silent'),
  'a seal stands before its late tellings': alterWrites((drafts) => [
    ...drafts.filter((draft) => !isSealedFact(draft)),
    ...drafts.filter(isSealedFact),
  ]),
  'late is lost': alterWrites((drafts) =>
    drafts.map((draft) =>
      draft.type === 'seal'
        ? { ...draft, late_keys: [] }
        : isSealedFact(draft)
          ? ({ ...draft, late: false } as Draft)
          : draft,
    ),
  ),
  'what is replaced is told as not sealed': alterDrafts('retract', (draft) =>
    draft.reason === 'replaced' ? { ...draft, reason: 'not_sealed', by: null } : draft,
  ),
  'a reorganised key is told as not sealed': alterDrafts('retract', (draft) =>
    draft.reason === 'reorg' ? { ...draft, reason: 'not_sealed' } : draft,
  ),
  'was names the end of the tape': alterDrafts('retract', (draft, tape) => ({
    ...draft,
    was: `${tape.epoch}.${tape.end()}`,
  })),
  'the digest is over another order': alterDrafts('seal', (draft) => ({
    ...draft,
    digest: createHash('sha256').update(draft.keys.toReversed().join('\n')).digest('hex').slice(0, 32),
  })),
  'a NAV is always new': alterDrafts('transfer', (draft) => ({ ...draft, nav: { ...draft.nav, age_s: 0 } })),
  'the same content of a transaction is told once': alterWrites((drafts) => {
    const seen = new Set<string>()
    return drafts.filter((draft) => {
      if (draft.type !== 'transfer') return true
      const name = [draft.tx.hash, draft.address, draft.from, draft.to, draft.raw].join()
      return seen.size < seen.add(name).size
    })
  }),
  'a restart settles what is settled': afterRestart((inputs) => ({
    ...inputs,
    tape: wrapTape(inputs.tape, {
      readAfter: () => [],
      note: (note) => {
        const restartPoint = inputs.tape.note(restartPointNote)
        if (note.name !== restartPointNote.name || !restartPoint) return inputs.tape.note(note)
        return note.read({ ...restartPoint, block: restartPoint.block - FORGOTTEN_BLOCKS, hash: null })
      },
    }),
  })),
  'a restart forgets what is open': afterRestart((inputs) => ({
    ...inputs,
    tape: wrapTape(inputs.tape, {
      readAfter: async (seq, limit) =>
        (await inputs.tape.readAfter(seq, limit)).filter(({ update }) => !isFact(update)),
      notes: (family) => (family.prefix === anyOpenKeyNotes.prefix ? new Map() : inputs.tape.notes(family)),
    }),
  })),
  'a node that is behind is believed': alterRequests((ask, { chain }) => (method, params) => {
    const [filter] = params as readonly { blockHash?: Hex; fromBlock?: string }[]
    return ask(method, params).pipe(
      // Whatever it does not know yet is taken for empty, and its head for the chain's.
      catchError((failure: unknown) => {
        if (filter?.blockHash !== undefined) return of([])
        throw failure
      }),
      map((answer) => {
        const block = chain.block(Number(params[0]))
        return method === 'eth_getBlockByNumber' && answer === null && block ? headerJson(block) : answer
      }),
    )
  }),
  'a reorganisation is ignored': (inputs, { chain }) => {
    const first = (number: number) => chain.blocksByNumber.get(number)?.[0]
    const frozen = (header: unknown): unknown => {
      const block = first(Number((header as { number?: string } | null)?.number))
      const parent = block && first(block.number - 1)
      return block && parent ? headerJson({ ...block, parentHash: parent.hash }) : header
    }
    const request: RequestFn = (method, params) => {
      const [filter] = params as readonly { blockHash?: Hex; address?: readonly Hex[] }[]
      const block = filter?.blockHash === undefined ? undefined : chain.blocksByHash.get(filter.blockHash)
      if (method === 'eth_getLogs' && block) {
        const logs = block.logs.filter(({ content }) => filter?.address?.includes(content.address))
        return of(logs.map((log) => logJson(log, block.hash)))
      }
      return inputs.request(method, params).pipe(map((answer) => (method === 'eth_getLogs' ? answer : frozen(answer))))
    }
    const { link } = inputs
    return {
      ...inputs,
      request,
      link:
        link &&
        ((asked) =>
          link(asked).pipe(
            map((signal) => (signal.type === 'head' ? { ...signal, header: frozen(signal.header) } : signal)),
          )),
    }
  },
  'a poll that returns less retracts': (inputs, { chain }) => {
    const publishedUpdates = new Map<string, Update>()
    let shown = new Set<string>()
    const keyOf = (log: Record<string, string>) =>
      `${Number(log.blockNumber)}-${log.transactionHash}-${Number(log.logIndex)}`
    const request: RequestFn = (method, params) =>
      inputs.request(method, params).pipe(
        tap((answer) => {
          if ((params[0] as { toBlock?: string }).toBlock !== 'pending' || !Array.isArray(answer)) return
          const now = new Set<string>(answer.map(keyOf))
          const gone = [...shown].flatMap((key) => (now.has(key) ? [] : (publishedUpdates.get(key) ?? [])))
          shown = now
          const drafts = gone.flatMap((update): Draft[] => {
            if (!isFact(update)) return []
            const { key, type: of, id: was, symbol, address, time } = update
            const block = { ...update.block, hash: chain.block(chain.head)?.hash ?? null }
            const retract = { symbol, address, time, key, of, was, block }
            return [{ type: 'retract', ...retract, reason: 'not_sealed', by: null, now: null }]
          })
          if (drafts.length > 0) void inputs.tape.append(drafts)
        }),
      )
    const append: Tape['append'] = async (drafts, notes) => {
      const entries = await inputs.tape.append(drafts, notes)
      for (const { update } of entries) if (isFact(update)) publishedUpdates.set(update.key, update)
      return entries
    }
    return { ...inputs, request, tape: wrapTape(inputs.tape, { append }) }
  },
  'the newest block is called safe': alterRequests(
    (ask) => (method, params) => ask(method, (params[0] === 'safe' ? ['latest', false] : params) as typeof params),
  ),
}
