import type { ChainEvent } from '../chain/source/source.ts'

/** The last chain event of each kind that a process needs if it begins to listen later. */
export class LastChainEvents {
  readonly #events = new Map<'status' | 'settled' | 'head' | 'pending' | 'safe' | 'finalized', ChainEvent>()

  get all(): readonly ChainEvent[] {
    return [...this.#events.values()]
  }

  receive(event: ChainEvent): void {
    switch (event.type) {
      case 'status':
        this.#events.set('status', event)
        return
      case 'cursor':
        this.#events.set('settled', event)
        return
      case 'sealed':
        // Only up to which block the chain is settled matters later.
        this.#events.set('settled', { ...event, holes: [], blocks: [] })
        return
      case 'finality':
        this.#events.set(event.stage, event)
        return
      case 'head':
        this.#events.set(event.sealed === null ? 'pending' : 'head', event)
        return
      case 'reorg':
        return this.#forgetHead(event.from)
      default:
    }
  }

  #forgetHead(from: number): void {
    const head = this.#events.get('head')
    if (head?.type === 'head' && (head.sealed ?? 0) >= from) this.#events.delete('head')
  }
}
