import { map } from 'rxjs'
import { headNote, Notes } from '../../src/relay/tape/notes.ts'
import type { SearchableTape, Tape } from '../../src/relay/tape/tape.ts'
import type { ModifyInputs } from './simulation.ts'
import { wrapTape } from './tape-wrappers.ts'
import { NOON } from './virtual-clock.ts'

/** Planted bugs about clocks, disks, endpoints and clients. The checker has to find every one. */

export const plantedMachineBugs: Readonly<Record<string, ModifyInputs>> = {
  'intervals follow the wall clock': (inputs) => {
    const { clock, wallTime } = inputs
    return { ...inputs, clock: { now: wallTime, schedule: clock.schedule } }
  },
  'numbers follow no clock': (inputs, simulation) => {
    simulation.numberingTime = () => NOON
    return inputs
  },
  'a resume from a lost position goes on': (inputs) => ({ ...inputs, tape: wrapTape(inputs.tape, { lostAfter: () => null }) }),
  'what is open is evicted': (inputs, { tape, settings: { tapeBound = Number.POSITIVE_INFINITY } }) => {
    const readKey: SearchableTape['readKey'] = (key) => tape.readKey(key).filter(({ seq }) => seq > tape.end() - tapeBound / 2)
    return { ...inputs, tape: wrapTape<Tape & Partial<SearchableTape>>(inputs.tape, { readKey }) }
  },
  'the highest head that was pushed is kept': (inputs) => {
    const { link, tape } = inputs
    let highest = 0
    const append: Tape['append'] = (drafts, notes = new Notes(), keepAfter) => {
      const head = notes.note(headNote)
      if (head) notes.set(headNote, { ...head, sealed: Math.max(highest, head.sealed ?? 0) })
      return tape.append(drafts, notes, keepAfter)
    }
    const readHead = map(<Signal extends { readonly type: string; readonly header?: unknown }>(signal: Signal): Signal => {
      const number = Number((signal.header as { number?: unknown } | null | undefined)?.number ?? 0)
      if (Number.isSafeInteger(number)) highest = Math.max(highest, number)
      return signal
    })
    return { ...inputs, tape: wrapTape(tape, { append }), link: link && ((linkInputs) => link(linkInputs).pipe(readHead)) }
  },
  'a client resumes at the newest message': (inputs, { client }) => {
    if (client) client.network.resumeAt = (since) => client.network.newestId ?? since
    return inputs
  },
  'a client says nothing of what the tape has lost': (inputs, { client }) => {
    if (client) client.takes = ({ type }) => type !== 'gap'
    return inputs
  },
  'only the first endpoint is asked': (inputs, { rpc }) => ({ ...inputs, request: rpc.requestOfFirst }),
}
