import { createHash } from 'node:crypto'
import { catchError, map, of, tap } from 'rxjs'
import type { Ask } from '../../src/chain/rpc/client.ts'
import type { Hex } from '../../src/protocol/fields.ts'
import type { Draft, DraftOf, Update } from '../../src/protocol/updates.ts'
import { noteNames, type Tape } from '../../src/tape/tape.ts'
import { isFact } from './laws/published-facts.ts'
import { wordPlants } from './planted-token-bugs.ts'
import { wireHeader, wireLog } from './simulated-node-json.ts'
import type { Between, World } from './simulation.ts'
import { around } from './tape-wrappers.ts'

/** Bugs that are put in on purpose, around what the relay is handed: the checker has to find every one of them. */

type Amended = (drafts: readonly Draft[], tape: Tape) => readonly Draft[]

const EVERY = 20
const FORGETFUL_BLOCKS = 20

/** Writes something else than what was to be written. */
const writing =
  (amend: Amended): Between =>
  (ports) => ({
    ...ports,
    tape: around(ports.tape, {
      append: (drafts, notes) => ports.tape.append(amend(drafts, ports.tape), notes),
    }),
  })

const without = (lost: (draft: Draft) => boolean): Between =>
  writing((drafts) => drafts.filter((draft) => !lost(draft)))

/** Changes every draft of a type. */
const changing = <Type extends Draft['type']>(
  type: Type,
  change: (draft: DraftOf<Type>, tape: Tape) => Draft,
): Between =>
  writing((drafts, tape) => drafts.map((draft) => (draft.type === type ? change(draft as DraftOf<Type>, tape) : draft)))

const asking =
  (change: (ask: Ask, world: World) => Ask): Between =>
  (ports, world) => ({ ...ports, ask: change(ports.ask, world) })

/** Only from the second life on. */
const reborn =
  (between: Between): Between =>
  (ports, world) =>
    world.lives > 1 ? between(ports, world) : ports

const told = (draft: Draft): boolean => isFact(draft as Update)
const isSealedTelling = (draft: Draft): boolean => told(draft) && 'stage' in draft && draft.stage === 'sealed'

export const plants: Readonly<Record<string, Between>> = {
  ...wordPlants,
  'every 20th message is lost': (ports, world) => {
    let written = 0
    const isLost = (draft: Draft) => {
      if (told(draft)) written += 1
      return told(draft) && written % EVERY === 0
    }
    return without(isLost)(ports, world)
  },
  'nothing is ever retracted': without(({ type }) => type === 'retract'),
  'nothing is ever amended': without(({ type }) => type === 'amend'),
  'a sealed block in five is not overheard': (ports) => ({
    ...ports,
    overhear: (heard) =>
      ports.overhear(
        heard.type === 'sealed' ? { ...heard, blocks: heard.blocks.filter(({ number }) => number % 5 > 0) } : heard,
      ),
  }),
  'a hole is passed over in silence': without(({ type }) => type === 'hole'),
  'a silent source is never noticed': without((draft) => draft.type === 'status' && draft.reason === 'silent'),
  'a seal stands before its late tellings': writing((drafts) => [
    ...drafts.filter((draft) => !isSealedTelling(draft)),
    ...drafts.filter(isSealedTelling),
  ]),
  'late is lost': writing((drafts) =>
    drafts.map((draft) =>
      draft.type === 'seal'
        ? { ...draft, late: [] }
        : isSealedTelling(draft)
          ? ({ ...draft, late: false } as Draft)
          : draft,
    ),
  ),
  'what is replaced is told as not sealed': changing('retract', (draft) =>
    draft.reason === 'replaced' ? { ...draft, reason: 'not_sealed', by: null } : draft,
  ),
  'a reorganised key is told as not sealed': changing('retract', (draft) =>
    draft.reason === 'reorg' ? { ...draft, reason: 'not_sealed' } : draft,
  ),
  'was names the end of the tape': changing('retract', (draft, tape) => ({
    ...draft,
    was: `${tape.epoch}.${tape.end()}`,
  })),
  'the digest is over another order': changing('seal', (draft) => ({
    ...draft,
    digest: createHash('sha256').update(draft.keys.toReversed().join('\n')).digest('hex').slice(0, 32),
  })),
  'a NAV is always new': changing('transfer', (draft) => ({ ...draft, nav: { ...draft.nav, age_s: 0 } })),
  'the same content of a transaction is told once': writing((drafts) => {
    const seen = new Set<string>()
    return drafts.filter((draft) => {
      if (draft.type !== 'transfer') return true
      const name = [draft.tx.hash, draft.address, draft.from, draft.to, draft.raw].join()
      return seen.size < seen.add(name).size
    })
  }),
  'a restart settles what is settled': reborn((ports) => ({
    ...ports,
    tape: around(ports.tape, {
      since: () => [],
      note: (name) => {
        const note = ports.tape.note(name)
        if (name !== noteNames.mark || typeof note !== 'object' || note === null || !('block' in note)) return note
        return { ...note, block: Number(note.block) - FORGETFUL_BLOCKS, hash: null }
      },
    }),
  })),
  'a restart forgets what is open': reborn((ports) => ({
    ...ports,
    tape: around(ports.tape, {
      since: async (seq, limit) => (await ports.tape.since(seq, limit)).filter(({ update }) => !isFact(update)),
      notes: (prefix) => (prefix === noteNames.open ? new Map() : ports.tape.notes(prefix)),
    }),
  })),
  'a node that is behind is believed': asking((ask, { chain }) => (method, params) => {
    const [filter] = params as readonly { blockHash?: Hex; fromBlock?: string }[]
    return ask(method, params).pipe(
      // Whatever it does not know yet is taken for empty, and its head for the chain's.
      catchError((failure: unknown) => {
        if (filter?.blockHash !== undefined) return of([])
        throw failure
      }),
      map((answer) => {
        const block = chain.block(Number(params[0]))
        return method === 'eth_getBlockByNumber' && answer === null && block ? wireHeader(block) : answer
      }),
    )
  }),
  'a reorganisation is ignored': (ports, { chain }) => {
    const first = (number: number) => chain.numbers.get(number)?.[0]
    const frozen = (header: unknown): unknown => {
      const block = first(Number((header as { number?: string } | null)?.number))
      const parent = block && first(block.number - 1)
      return block && parent ? wireHeader({ ...block, parentHash: parent.hash }) : header
    }
    const ask: Ask = (method, params) => {
      const [filter] = params as readonly { blockHash?: Hex; address?: readonly Hex[] }[]
      const block = filter?.blockHash === undefined ? undefined : chain.hashes.get(filter.blockHash)
      if (method === 'eth_getLogs' && block) {
        const logs = block.logs.filter(({ content }) => filter?.address?.includes(content.address))
        return of(logs.map((log) => wireLog(log, block.hash)))
      }
      return ports.ask(method, params).pipe(map((answer) => (method === 'eth_getLogs' ? answer : frozen(answer))))
    }
    const { link } = ports
    return {
      ...ports,
      ask,
      link:
        link &&
        ((asked) =>
          link(asked).pipe(
            map((signal) => (signal.type === 'head' ? { ...signal, header: frozen(signal.header) } : signal)),
          )),
    }
  },
  'a poll that returns less retracts': (ports, { chain }) => {
    const heard = new Map<string, Update>()
    let shown = new Set<string>()
    const keyOf = (log: Record<string, string>) =>
      `${Number(log.blockNumber)}-${log.transactionHash}-${Number(log.logIndex)}`
    const ask: Ask = (method, params) =>
      ports.ask(method, params).pipe(
        tap((answer) => {
          if ((params[0] as { toBlock?: string }).toBlock !== 'pending' || !Array.isArray(answer)) return
          const now = new Set<string>(answer.map(keyOf))
          const gone = [...shown].flatMap((key) => (now.has(key) ? [] : (heard.get(key) ?? [])))
          shown = now
          const drafts = gone.flatMap((update): Draft[] => {
            if (!isFact(update)) return []
            const { key, type: of, id: was, symbol, address, time } = update
            const block = { ...update.block, hash: chain.block(chain.head)?.hash ?? null }
            const retract = { symbol, address, time, key, of, was, block }
            return [{ type: 'retract', ...retract, reason: 'not_sealed', by: null, now: null }]
          })
          if (drafts.length > 0) void ports.tape.append(drafts)
        }),
      )
    const append: Tape['append'] = async (drafts, notes) => {
      const entries = await ports.tape.append(drafts, notes)
      for (const { update } of entries) if (isFact(update)) heard.set(update.key, update)
      return entries
    }
    return { ...ports, ask, tape: around(ports.tape, { append }) }
  },
  'the newest block is called safe': asking(
    (ask) => (method, params) => ask(method, (params[0] === 'safe' ? ['latest', false] : params) as typeof params),
  ),
}
